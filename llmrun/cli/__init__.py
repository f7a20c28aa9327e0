"""The command line: words typed by a person in, results on stdout, all else on stderr.

It knows the client, the store and the settings. It does not know the engine or native code.
"""
