"""What goes along with a message of the person: the selection, the open note, what was mentioned, what was found; within a budget."""
