#include "widgets/design/gesture_host.h"
