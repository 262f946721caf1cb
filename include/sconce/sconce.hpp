#pragma once

/// Every public header of sconce. Programs that need less include less: most headers are light.
#include "sconce/cuda/device_properties.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/dataset.hpp"
#include "sconce/data/idx.hpp"
#include "sconce/devices.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/optim/amp_scaling.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/lr_scheduler_base.hpp"
#include "sconce/repr.hpp"
#include "sconce/stopwatch.hpp"
#include "sconce/trainer.hpp"
#include "sconce/version.hpp"
