/* A libcuda that does nothing, for measuring what a launch costs the host: the functions that Triton's launcher
   asks for, each of which succeeds at once. `started` counts the kernels. */

#include <stdint.h>
#include <string.h>

typedef unsigned long long word;

long started = 0;

int cuLaunchKernelEx(void *config, void *function, void **arguments, void **extra) {
  started++;
  return 0;
}

/* The address itself, as for memory of the device. */
int cuPointerGetAttribute(void *data, int attribute, word pointer) {
  memcpy(data, &pointer, sizeof pointer);
  return 0;
}

int cuPointerGetAttributes(unsigned count, int *attributes, void **data, word pointer) {
  for (unsigned i = 0; i < count; i++)
    memcpy(data[i], &pointer, sizeof pointer);
  return 0;
}

static int a_thing(void **out) {
  *out = (void *)1;
  return 0;
}

int cuCtxGetCurrent(void **context) { return a_thing(context); }
int cuModuleLoadData(void **module, const void *image) { return a_thing(module); }
int cuModuleGetFunction(void **function, void *module, const char *name) { return a_thing(function); }
int cuDevicePrimaryCtxRetain(void **context, int device) { return a_thing(context); }
int cuCtxSetCurrent(void *context) { return 0; }

/* Threads of a block, and what is below them of everything else; shared memory of Hopper. */
int cuFuncGetAttribute(int *value, int attribute, void *function) {
  *value = 1024;
  return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = 232448;
  return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value) { return 0; }
int cuFuncSetCacheConfig(void *function, int config) { return 0; }

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}

int cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}

int cuGetErrorString(int error, const char **text) {
  *text = "an error of nothing";
  return 0;
}

int cuCtxGetLimit(size_t *value, int limit) {
  *value = 0;
  return 0;
}

int cuCtxSetLimit(int limit, size_t value) { return 0; }
int cuOccupancyMaxActiveClusters(int *count, void *function, void *config) {
  *count = 1;
  return 0;
}
int cuTensorMapEncodeTiled(void) { return 0; }
int cuTensorMapEncodeIm2col(void) { return 0; }
