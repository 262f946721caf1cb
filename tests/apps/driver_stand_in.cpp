// A stand-in for the driver library, with the same library name. The stand-in reports one GPU.
extern "C" int cuInit(unsigned) {
  return 0;
}
extern "C" int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
