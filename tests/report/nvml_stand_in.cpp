// A stand-in for the driver's NVML that reports two GPUs and defines the functions that
// libnvidia-ml.so.1 exports. If FAILING is defined, initialization fails. If LACKING is defined,
// only the functions for initialization and counting exist. STAND_IN_CUDA is the CUDA version that
// the driver supports.
#include <cstdio>
#include <cstdlib>

extern "C" {

const char* nvmlErrorString(int code) {
  return code == 9 ? "Driver Not Loaded" : "Other";
}

int nvmlInit_v2() {
#ifdef FAILING
  return 9;
#else
  return 0;
#endif
}

int nvmlShutdown() {
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return 0;
}

#ifndef LACKING
int nvmlSystemGetDriverVersion(char* text, unsigned int size) {
  std::snprintf(text, size, "470.1");
  return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  const char* wanted = std::getenv("STAND_IN_CUDA");
  *version = wanted != nullptr ? std::atoi(wanted) : 11040;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  static int devices[2] = {0, 1};
  *device = &devices[index];
  return 0;
}

int nvmlDeviceGetName(void*, char* name, unsigned int size) {
  std::snprintf(name, size, "Made-up GPU \xff");
  return 0;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned int size) {
  std::snprintf(uuid, size, "GPU-%d", *static_cast<int*>(device));
  return 0;
}

int nvmlDeviceGetPciInfo_v3(void* device, void* pci) {
  std::snprintf(static_cast<char*>(pci) + 36, 32, "00000000:%d5:00.0",
                *static_cast<int*>(device) + 1);
  return 0;
}

int nvmlDeviceGetMemoryInfo(void*, unsigned long long* total_free_used) {
  total_free_used[0] = 8ULL << 30;
  total_free_used[1] = 7ULL << 30;
  total_free_used[2] = 1ULL << 30;
  return 0;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned int* gpu_and_memory) {
  if (*static_cast<int*>(device) == 1) return 3;  // not supported, as on some laptops
  gpu_and_memory[0] = 42;
  gpu_and_memory[1] = 7;
  return 0;
}
#endif

}  // extern "C"
