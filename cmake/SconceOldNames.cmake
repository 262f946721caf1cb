# Forwards the header paths of 0.2 to the new ones, with headers that are generated at configure time and installed
# beside include/sconce. To be removed in 0.4.

include_guard(GLOBAL)

set(old_names # <old path> <new path>
  cuda/captured_step             captured_step
  cuda/nccl                      distributed/process_group
  data/batch_reader              data/detail/batch_reader
  data/begin_at                  data/detail/begin_at
  data/copy_stream               data/detail/copy_stream
  data/idx                       vision/idx
  data/read_ahead                data/detail/read_ahead
  data/transforms                vision/transforms
  freed_memory                   tuned_memory
  nn/data_parallel               distributed/data_parallel
  nn/distributed_data_parallel   distributed/distributed_data_parallel
  trainer                        training/trainer
  training/batch                 training/any_batches
  training/model_steps           training/detail/model_steps)

set(SCONCE_OLD_NAMES_DIR "${PROJECT_BINARY_DIR}/old_names")
set(includes "")
while(old_names)
  list(POP_FRONT old_names old new)
  file(CONFIGURE OUTPUT "${SCONCE_OLD_NAMES_DIR}/sconce/${old}.hpp"
    CONTENT "#pragma once\n\n#include \"sconce/${new}.hpp\"  // its place since 0.3\n")
  string(APPEND includes "#include \"sconce/${old}.hpp\"\n")
endwhile()
file(CONFIGURE OUTPUT "${SCONCE_OLD_NAMES_DIR}/all.hpp" CONTENT "#pragma once\n\n${includes}") # for a test

add_library(sconce_old_names INTERFACE)
set_target_properties(sconce_old_names PROPERTIES EXPORT_NAME old_names)
target_include_directories(sconce_old_names INTERFACE "$<BUILD_INTERFACE:${SCONCE_OLD_NAMES_DIR}>")
target_link_libraries(sconce_core PUBLIC sconce_old_names)
