#include "engine/gesture/gesture.h"
