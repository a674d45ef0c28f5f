package cuda

import "slices"

// Libraries, as traces.CudaLibrary names them.
const (
	ofDriver  = "driver"
	ofRuntime = "runtime"
)

// function is one of a library's that is watched. Arguments are told by its class,
// see enum cuda_class of bpf/events.h; signatures are those of cuda.h and
// cuda_runtime_api.h of CUDA 11 to 13.
type function struct {
	name      string // as exported, without the endings of its variants
	library   string
	class     cudaCudaClass
	direction string // as traces.Copy's; "" the call does not tell
	async     bool   // by its name it need not wait
}

// functions has a number for each: its place.
var functions = []function{
	{"cuMemcpyHtoDAsync_v2", ofDriver, cudaCudaClassCUDA_COPY, "to-device", true},
	{"cuMemcpyHtoD_v2", ofDriver, cudaCudaClassCUDA_COPY_NOW, "to-device", false},
	{"cuMemcpyDtoHAsync_v2", ofDriver, cudaCudaClassCUDA_COPY, "to-host", true},
	{"cuMemcpyDtoH_v2", ofDriver, cudaCudaClassCUDA_COPY_NOW, "to-host", false},
	{"cuMemcpyAsync", ofDriver, cudaCudaClassCUDA_COPY, "", true},
	{"cuMemcpy", ofDriver, cudaCudaClassCUDA_COPY_NOW, "", false},
	{"cuMemcpy2DAsync_v2", ofDriver, cudaCudaClassCUDA_COPY_2D, "", true},
	{"cuMemcpy2D_v2", ofDriver, cudaCudaClassCUDA_COPY_2D_NOW, "", false},
	{"cuMemcpy2DUnaligned_v2", ofDriver, cudaCudaClassCUDA_COPY_2D_NOW, "", false},
	{"cuMemcpyBatchAsync", ofDriver, cudaCudaClassCUDA_COPY_BATCH, "", true},
	{"cuMemcpyBatchAsync_v2", ofDriver, cudaCudaClassCUDA_COPY_BATCH, "", true},
	{name: "cuMemcpyDtoDAsync_v2", library: ofDriver, class: cudaCudaClassCUDA_COPY_DEVICE},
	{name: "cuMemcpyDtoD_v2", library: ofDriver, class: cudaCudaClassCUDA_COPY_DEVICE},

	{name: "cuStreamSynchronize", library: ofDriver, class: cudaCudaClassCUDA_STREAM_SYNC},
	{name: "cuCtxSynchronize", library: ofDriver, class: cudaCudaClassCUDA_CONTEXT_SYNC},
	{name: "cuCtxSynchronize_v2", library: ofDriver, class: cudaCudaClassCUDA_CONTEXT_SYNC}, // since 13
	{name: "cuEventSynchronize", library: ofDriver, class: cudaCudaClassCUDA_EVENT_SYNC},
	{name: "cuEventRecord", library: ofDriver, class: cudaCudaClassCUDA_EVENT},
	{name: "cuEventRecordWithFlags", library: ofDriver, class: cudaCudaClassCUDA_EVENT},
	{name: "cuStreamWaitEvent", library: ofDriver, class: cudaCudaClassCUDA_EVENT},

	{name: "cuLaunchKernel", library: ofDriver, class: cudaCudaClassCUDA_LAUNCH},
	{name: "cuLaunchCooperativeKernel", library: ofDriver, class: cudaCudaClassCUDA_LAUNCH},
	{name: "cuLaunchKernelEx", library: ofDriver, class: cudaCudaClassCUDA_LAUNCH_EX},
	{name: "cuGraphLaunch", library: ofDriver, class: cudaCudaClassCUDA_LAUNCH_GRAPH},
	{name: "cuStreamBeginCapture_v2", library: ofDriver, class: cudaCudaClassCUDA_CAPTURE},
	{name: "cuStreamEndCapture", library: ofDriver, class: cudaCudaClassCUDA_CAPTURED},

	{name: "cuMemHostAlloc", library: ofDriver, class: cudaCudaClassCUDA_PINNED},
	{name: "cuMemAllocHost_v2", library: ofDriver, class: cudaCudaClassCUDA_PINNED},
	{name: "cuMemAllocManaged", library: ofDriver, class: cudaCudaClassCUDA_MANAGED},
	{name: "cuMemHostRegister_v2", library: ofDriver, class: cudaCudaClassCUDA_REGISTERED},
	{name: "cuMemFreeHost", library: ofDriver, class: cudaCudaClassCUDA_FREED},
	{name: "cuMemHostUnregister", library: ofDriver, class: cudaCudaClassCUDA_UNREGISTERED},

	{name: "cudaMemcpyAsync", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME_COPY},
	{name: "cudaMemcpy", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME_COPY},
	{name: "cudaMemcpy2DAsync", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
	{name: "cudaMemcpyBatchAsync", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
	{name: "cudaStreamSynchronize", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
	{name: "cudaDeviceSynchronize", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
	{name: "cudaEventSynchronize", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
	{name: "cudaHostAlloc", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
	{name: "cudaMallocHost", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
	{name: "cudaHostRegister", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
	{name: "cudaFreeHost", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
	{name: "cudaHostUnregister", library: ofRuntime, class: cudaCudaClassCUDA_RUNTIME},
}

// variants are endings of the same function for programs whose default stream is
// one for each thread (CUDA_API_PER_THREAD_DEFAULT_STREAM).
var variants = []string{"", "_ptsz", "_ptds"}

// entryOnly is what is seen to begin, and not to end.
func (f *function) entryOnly() bool {
	return f.class >= cudaCudaClassCUDA_EVENT && f.class <= cudaCudaClassCUDA_LAUNCH_GRAPH || f.class == cudaCudaClassCUDA_RUNTIME
}

// copies reports whether it copies memory and is timed.
func (f *function) copies() bool { return f.class <= cudaCudaClassCUDA_COPY_BATCH }

// cookie is what the kernel side is told of a function.
func cookie(number int) uint64 {
	const classShift = 16
	return uint64(number) | uint64(functions[number].class)<<classShift
}

// lacking is those of a library's functions whose absence matters: what all
// versions since CUDA 11 have.
func lacking(library string, has map[string]bool) (names []string) {
	newer := []string{"cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2", "cuCtxSynchronize_v2", "cuLaunchKernelEx", "cuEventRecordWithFlags",
		"cudaMemcpyBatchAsync"}
	for _, f := range functions {
		if f.library == library && !has[f.name] && !slices.Contains(newer, f.name) {
			names = append(names, f.name)
		}
	}
	return names
}
