#pragma once

namespace planloom {

constexpr const char *kSmall = "zoo:mlp?layers=2&hidden=32&batch=8";

} // namespace planloom
