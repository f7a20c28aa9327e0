# Read by CMake where it builds llama.cpp for llama-cpp-python (scripts/environment.py names this file to it).
# The bindings ask for the library of llama.cpp's own programs and use none of it: some two minutes on 2 cores.
set(LLAMA_BUILD_COMMON OFF)
