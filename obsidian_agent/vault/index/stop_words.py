"""Words too common to distinguish notes, in the languages of most vaults."""

from __future__ import annotations

from typing import Final

_COMMON: Final = """
a about all am an and any are as at be been but by can could did do does for from get had has have
he her his how i if in into is it its me my no not of on or our she should so some than that the
their them then there these they this those to us was we were what when where whether which who
whom whose why will with would you your
aber alle als also am an auch auf aus bei bin bis bitte da damit das dass dein dem den denn der
des
die dies diese dieser doch du durch ein eine einem einen einer es für gegen hat habe haben hatte
ich ihr im in ist ja kann kein keine man mein meine mich mir mit nach nicht noch nur ob oder ohne
schon sein seine sich sie sind so um und uns unser vom von vor wann war waren warum was welche
welcher
welches wenn wer werden wie wird wir wo zu zum zur über
au aux avec ce ces cette comment dans de des du elle elles en est et eux faut il ils je la le les
leur leurs lui ma mais me mes moi mon ne nos notre nous on ont ou où par pas pour pourquoi qu
quand
que quel quelle quelles quels qui sa se ses son sont sur ta te tes toi ton tu un une vos votre
vous
à été être
al algo como con cual cuando cuanto cuándo cuánto cuál cómo de del desde donde dónde el ella ellos
en entre era
es esa ese eso esta está este esto fue ha hay la las le les lo los más me mi mis muy no nos o para
pero por porque que quien quién qué se según si sin sobre son su sus sí te tu tus un una uno unos
y
ya yo
ai alla alle anche che chi ci come con cosa cui da dal dalla de degli dei del della delle di dove
e
era essere gli ha hanno ho i il in io la le lei lo loro lui ma mi mia mio ne nel nella nelle noi
non o per perché più quale quali quando quanto questa questo qui se sei si sia sono su sua sul
sulla suo ti tra tu tuo un una uno vi voi è
ao aos até com como da das de dele dela do dos e ela ele em entre era essa esse esta está eu foi
há isso isto já lhe mais mas me meu minha muito na nas não no nos nós num numa o onde os ou para
pela pelo por porque qual quando que quem se sem ser seu sua são também te tem um uma você à às é
а без бы был была были было быть в вам вас во вот все вы где да для до его ее её если есть еще ещё
же за и из или им их к как какая какие какой ко когда кто сколько ли мне мой моя мы на над не него
нет но о
об он она они от по под почему при с со так там то тот ты у уже чем что чтобы эта эти это этот я
"""
STOP_WORDS: Final = frozenset(_COMMON.split())
"""Words too common to distinguish notes: English, German, French, Spanish, Italian, Portuguese,
and Russian."""
