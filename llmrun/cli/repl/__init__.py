"""`llmrun chat`: a conversation in the terminal, or read line by line from a pipe.

`lines` decides when a message is complete, `conversation` is what is said and set, `sessions` where that
is kept, `slash` the table of commands (`said`, `setting`, `keeping` and `figures` do them), `readers` where
lines come from, `completion` what Tab offers, `screen` how an answer is shown, `loop` joins them.
"""
