"""llama.cpp's own dialect, as its llama-server speaks it beside OpenAI's."""
