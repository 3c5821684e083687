#pragma once

#include "engine/hardware/cluster.h"

#include <gtest/gtest.h>

namespace planloom {

inline Cluster cluster(const char *name)
{
    auto found = clusterNamed(name);
    EXPECT_TRUE(found);
    return *found;
}

} // namespace planloom
