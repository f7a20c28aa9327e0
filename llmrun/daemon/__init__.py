"""Which runner, when: runner processes, leases, keep-alive, eviction, the lock. No HTTP, no native code."""
