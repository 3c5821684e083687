#include "engine/kernels/products/onednn_version.h"

#ifdef PLANLOOM_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace planloom {

std::string oneDnnVersion()
{
#ifdef PLANLOOM_HAVE_ONEDNN
    const dnnl_version_t *const version = dnnl_version();
    return std::to_string(version->major) + "." + std::to_string(version->minor) + "."
        + std::to_string(version->patch);
#else
    return {};
#endif
}

} // namespace planloom
