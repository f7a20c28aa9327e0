"""`llmrun chat`: a conversation in the terminal, or read line by line from a pipe.

`lines` decides when a message is complete, `conversation` is what is said and set, `slash` the
commands, `readers` where lines come from, `loop` joins them.
"""
