"""The daemon seen from outside: find it, start it, talk to it over HTTP. It knows no terminal."""
