#pragma once

// Hot loops are compiled for several instruction sets and chosen at load time, so that one binary runs
// anywhere. Only GCC does so reliably for functions in anonymous namespaces; the resolvers run before a
// sanitizer is ready.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)                    \
    && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PLANLOOM_HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PLANLOOM_HOT
#endif
