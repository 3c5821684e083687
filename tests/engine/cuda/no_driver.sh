#!/usr/bin/env bash
# no_driver.sh FILE...: none of the programs and libraries names the driver's library, without which it would not start, nor
# the large ones that are opened when they are needed.
set -euo pipefail
for file in "$@"; do
    if needed=$(readelf -d "$file" | grep -E 'NEEDED.*lib(cuda|nvidia-ml|nccl|cublas|cublasLt|nvrtc|cudnn)\.so'); then
        printf '%s is linked with what it should open:\n%s\n' "$file" "$needed" >&2
        exit 1
    fi
done
