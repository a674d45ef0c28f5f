package traces

// The tables of a trace, one Go struct each: the struct is the schema, the
// writer's row and the reader's row. Columns are the fields in their order,
// named by the `col` tag. FORMAT.md says the same for readers in other
// languages; a test compares the two.
//
// Evolution: a column may be added at the end of a struct, never renamed,
// retyped or reused; a reader that misses a column gives its zero value, a
// reader that meets an unknown column or table skips it.
//
// Times are nanoseconds of CLOCK_MONOTONIC of the host's boot (the clock of
// Python's time.monotonic_ns and of bpf_ktime_get_ns), sizes are bytes.

// Head begins every row of every table.
type Head struct {
	Seq  uint64 `col:"seq"`   // number of the row in its table and part, from 0; what evidence refers to
	TsNS int64  `col:"ts_ns"` // when it happened
	Proc uint32 `col:"proc"`  // Process.Head.Proc in the same part; 0 is the recorder
}

// Process is one process of the run. A later row with the same Proc adds to the
// earlier one (the hook was loaded, the process called exec): its non-zero
// fields win.
type Process struct {
	Head
	Pid        int32  `col:"pid"`         // as the process sees itself
	Ppid       int32  `col:"ppid"`        // at the time of the row
	StartTicks uint64 `col:"start_ticks"` // field 22 of /proc/PID/stat; (boot id, pid, start_ticks) is unique
	Kind       string `col:"kind"`        // target (what record started), python, worker, other
	// on, idle (a Python that has not imported torch, as far as is known), off (a Python in which the hook could not
	// load), none (no Python)
	Hook      string `col:"hook"`
	Cmdline   string `col:"cmdline"`    // arguments joined by spaces, at most 4096 bytes
	Exe       string `col:"exe"`        // path of the program
	Cwd       string `col:"cwd"`        // working directory
	Python    string `col:"python"`     // version
	Torch     string `col:"torch"`      // version; "" not imported
	Numpy     string `col:"numpy"`      // version; "" not imported
	Rank      int32  `col:"rank"`       // of torch.distributed's environment; -1 unknown
	LocalRank int32  `col:"local_rank"` // on its node; -1 unknown
	WorldSize int32  `col:"world_size"` // ranks of the run; 0 unknown
	Note      string `col:"note"`       // why there is no hook, why it stopped
	Copies    string `col:"copies"`     // record --copies: on, or why the hook cannot tell of them; "" it was not asked for
}

// Exit is the end of a process.
type Exit struct {
	Head
	ExitCode int32 `col:"exit_code"` // exit code; -1 when a signal ended it or nobody knows
	Signal   int32 `col:"signal"`    // 0: none
	// kernel (its tracepoint), wait (our child), exitcode (Process.exitcode in its parent), gone (vanished from /proc)
	Source string `col:"source"`
}

// Act is what a Python was seen to do to another process, or that it ended in
// good order itself; or what a shell will do.
type Act struct {
	Head // proc: who did it
	// signal (it sent one), status (it learned that a child of its own ended badly), end (it ended itself, and not by an
	// exception that nobody caught: whatever its exit code says is an answer of its own), looks (a shell, whose script names the exit
	// code of a command: $?, PIPESTATUS, trap)
	Op       string `col:"op"`
	Pid      int32  `col:"pid"`       // of the other; of signal: negative: a process group, 0: its own; of status: 0: os.system's child
	Signal   int32  `col:"signal"`    // number, of signal
	ExitCode int32  `col:"exit_code"` // of status, as multiprocessing's: -N for signal N
	// of status: yes (the program looked at it, or got it as an exception), no (not so far: a later row says so), "" (nobody knows: a
	// library waited for the child, the program gets what it prints, or it has a queue or the like through which it may tell)
	Read    string `col:"read"`
	By      string `col:"by"`       // Python's function or attribute
	BeginNS int64  `col:"begin_ns"` // of os.system's child: not earlier; else 0
}

// Loader is one DataLoader object.
type Loader struct {
	Head
	Loader          uint32 `col:"loader"`           // from 1 in its process
	Class           string `col:"class"`            // qualified names
	DatasetClass    string `col:"dataset_class"`    // class
	Iterable        bool   `col:"iterable"`         // an IterableDataset
	Length          int64  `col:"length"`           // samples; -1 unknown (the hook calls no user code)
	BatchSize       int32  `col:"batch_size"`       // -1: none
	NumWorkers      int32  `col:"num_workers"`      // 0: the main process fetches
	Prefetch        int32  `col:"prefetch"`         // -1: none
	DropLast        bool   `col:"drop_last"`        // drop_last=True was given
	PinMemory       bool   `col:"pin_memory"`       // pin_memory=True was given
	Persistent      bool   `col:"persistent"`       // persistent_workers=True was given
	InOrder         bool   `col:"in_order"`         // batches are delivered in order
	StartMethod     string `col:"start_method"`     // fork, spawn, forkserver; "" without workers
	Sampler         string `col:"sampler"`          // class
	BatchSampler    string `col:"batch_sampler"`    // class; "" none
	SamplerEpoch    int64  `col:"sampler_epoch"`    // -1: no such attribute, here and below
	SamplerRank     int64  `col:"sampler_rank"`     // of a distributed sampler
	SamplerReplicas int64  `col:"sampler_replicas"` // of a distributed sampler
	SamplerSeed     int64  `col:"sampler_seed"`     // of a distributed sampler
	Generator       bool   `col:"generator"`        // DataLoader(generator=...) was given
	Collate         string `col:"collate"`          // qualified name of collate_fn
	WorkerInit      string `col:"worker_init"`      // "" none
	// where DataLoader(...) was called, outside torch and the libraries that make loaders for a program (Lightning,
	// accelerate, WebDataset and such)
	File  string `col:"file"`
	Line  int32  `col:"line"`  // in File
	Stack string `col:"stack"` // up to 8 callers "file:line", innermost first, joined by \n
	// Dataset.Dataset of the same process; 0: of an older trace, or put together of others: batch_put.ids names the
	// samples
	DatasetID uint32 `col:"dataset_id"`
	SamplerID uint32 `col:"sampler_id"` // from 1 in its process: the object whose class is Sampler; 0 not known
	// classes from the batch sampler inwards, each with its nearest base of torch's or torchdata's if it is not of theirs:
	// "accelerate.data_loader.BatchSamplerShard(torch.utils.data.sampler.BatchSampler) > ..."
	Samplers string `col:"samplers"`
	// of a distributed sampler: yes, no; "" no such attribute. Of an IterableDataset: yes, its code names a shuffle, and it
	// has no attribute that switches that off
	Shuffle      string `col:"shuffle"`
	Replacement  string `col:"replacement"`   // of a sampler: yes, no; "" no such attribute
	SamplerTotal int64  `col:"sampler_total"` // total_size of a distributed sampler: samples of all ranks, padding included; 0 not known
	Batched      string `col:"batched"`       // a fetch is of a list of samples: yes; of one (batch_size=None): no; "" of an older trace
	// what len() of an IterableDataset gave when the program asked for the loader's; 0: it did not
	LenAsked int64 `col:"len_asked"`
	// the dataset as it was given, from 1 in its process, one for each object, also where it is put together of others; 0 not
	// known
	Given uint32 `col:"given"`
}

// Pass is the begin or end of one iteration of a loader.
type Pass struct {
	Head
	Loader       uint32 `col:"loader"`        // Loader.Loader of the same process
	Pass         uint32 `col:"pass"`          // from 0 for each loader object
	Phase        string `col:"phase"`         // begin, end
	BaseSeed     int64  `col:"base_seed"`     // that the workers are seeded from; 0 unknown
	SamplerEpoch int64  `col:"sampler_epoch"` // at begin; -1: no such attribute
	End          string `col:"end"`           // at end: exhausted, dropped (break), error
	Delivered    uint32 `col:"delivered"`     // batches, at end
	LenAsked     int64  `col:"len_asked"`     // Loader.LenAsked, at end
	Thread       string `col:"thread"`        // that called iter(), at begin: main, other; "" not known
	ThreadID     uint32 `col:"thread_id"`     // low bits of its identity; 0 not known
}

// Worker is the begin, readiness or end of one worker process or thread, or of
// an IterableDataset the first fetch of one of its passes.
type Worker struct {
	Head            // begin, exit: the parent; ready, first, end: the worker itself
	Loader   uint32 `col:"loader"`    // 0 in ready, first and end: the worker does not know
	Pass     uint32 `col:"pass"`      // the pass that started it; first, end: as in BatchFetch
	Worker   int32  `col:"worker"`    // number in its pass, from 0
	Pid      int32  `col:"pid"`       // 0 unknown
	Phase    string `col:"phase"`     // begin, ready, first, end, exit
	Seed     int64  `col:"seed"`      // torch.initial_seed() in the worker, at ready
	ExitCode int32  `col:"exit_code"` // multiprocessing's: -N for signal N; at exit
	// its arguments, the dataset among them, as spawn and forkserver pickle them; at begin; 0: nothing was, or not known
	PickledBytes int64 `col:"pickled_bytes"`
	// how long that took in the parent, less what it waited for a processor (schedstat, where the kernel has it)
	PickleNS int64 `col:"pickle_ns"`
	// at exit: yes (it ended after its parent had begun to shut the workers down), no (before), "" not known
	Asked string `col:"asked"`
	// CPU time of the thread that pickled, of PickleNS; 0 not known
	PickleCPUNS int64 `col:"pickle_cpu_ns"`
	// CPU time of the worker since iter() of its pass: at first, until its first fetch was over; at end, until it ended; 0 not
	// known
	CPUNS int64 `col:"cpu_ns"`
	// at first, of the same time: bytes that the worker has written by system calls, to files, pipes and sockets; -1 not known
	Written int64 `col:"written"`
}

// BatchPut is a list of sample indices handed to a worker. Long lists take
// several rows, First says where each begins.
type BatchPut struct {
	Head
	Loader  uint32  `col:"loader"`  // Loader.Loader of the same process
	Pass    uint32  `col:"pass"`    // Pass.Pass
	Batch   uint32  `col:"batch"`   // from 0 in its pass
	Worker  int32   `col:"worker"`  // that gets it
	DurNS   int64   `col:"dur_ns"`  // of sampler and queue
	First   uint32  `col:"first"`   // position of Indices[0] in the batch
	Indices []int64 `col:"indices"` // of samples in the dataset
	Keys    string  `col:"keys"`    // instead of Indices where they are no integers: at most 256 bytes
	// of the same samples in the datasets that the loader's is put together of (torch's Subset and ConcatDataset):
	// Dataset.Dataset << 40 | index there; empty: Loader.DatasetID << 40 | Indices
	IDs []int64 `col:"ids"`
}

// BatchFetch is one fetch: of a worker, or of the main process (worker -1)
// without workers. In a worker Loader is 0 and Pass counts the
// passes of this worker process; Worker.Pass of its begin row is to be added.
type BatchFetch struct {
	Head             // ts_ns: fetch begins
	Loader    uint32 `col:"loader"`     // Loader.Loader of the same process; 0 in a worker
	Pass      uint32 `col:"pass"`       // Pass.Pass, or as said above
	Worker    int32  `col:"worker"`     // number in its pass; -1 the main process
	Batch     uint32 `col:"batch"`      // BatchPut.Batch
	Fetch     uint32 `col:"fetch"`      // number of the fetch in this pass of this worker, from 0
	WaitNS    int64  `col:"wait_ns"`    // for an index, before the fetch
	FetchNS   int64  `col:"fetch_ns"`   // dataset and transforms, without collate
	CollateNS int64  `col:"collate_ns"` // collate function
	PutNS     int64  `col:"put_ns"`     // handing over the batch before to the queue's feeder thread
	Samples   int32  `col:"samples"`    // in the batch
}

// FetchSplit is where the time of one fetch went, of some of them: a small share of their time is spent on it, and no two in a row are
// looked at. The numbers are of the thread that fetches, from the fetch's begin to its samples: wall_ns less cpu_ns less queue_ns was
// spent blocked, in reading, in a sleep, waiting for a lock or for other threads.
type FetchSplit struct {
	Head             // ts_ns: fetch begins
	Loader    uint32 `col:"loader"`     // as in BatchFetch
	Pass      uint32 `col:"pass"`       // as in BatchFetch
	Worker    int32  `col:"worker"`     // as in BatchFetch
	Batch     uint32 `col:"batch"`      // as in BatchFetch
	Fetch     uint32 `col:"fetch"`      // as in BatchFetch
	Samples   int32  `col:"samples"`    // in the batch
	WallNS    int64  `col:"wall_ns"`    // BatchFetch.FetchNS of it
	CPUNS     int64  `col:"cpu_ns"`     // on a processor
	OthersNS  int64  `col:"others_ns"`  // on processors: the other threads of the process, meanwhile
	QueueNS   int64  `col:"queue_ns"`   // ready to run, waiting for a processor; -1 the kernel does not say
	ReadBytes int64  `col:"read_bytes"` // by system calls, of files, pipes or sockets, cached or not; -1 as above
	Reads     int64  `col:"reads"`      // these system calls; -1 as above
	DiskBytes int64  `col:"disk_bytes"` // that had to come from a disk, by such calls or as pages of a mapping; -1 as above
	OwnNS     int64  `col:"own_ns"`     // of cpu_ns and wall_ns, what it took to look at transforms
	// Of the transforms that were timed in it, one item each:
	Transforms []int64 `col:"transforms"` // Transform.Transform
	Calls      []int64 `col:"calls"`      // how often it was called
	SpentNS    []int64 `col:"spent_ns"`   // what all calls took, without own_ns
}

// Transform is a chain of transforms that a dataset holds, or one of its places: an object with a list of callables named transforms, as
// torchvision's Compose, or a torch.nn.Sequential. A call of a chain is timed in FetchSplit where its own code has called its places,
// all and in their order, in the thread that fetches.
type Transform struct {
	Head             // ts_ns: it was found
	Loader    uint32 `col:"loader"`    // as in BatchFetch
	Pass      uint32 `col:"pass"`      // as in BatchFetch
	Worker    int32  `col:"worker"`    // as in BatchFetch
	Transform uint32 `col:"transform"` // from 1 in its process
	Chain     string `col:"chain"`     // where the chain is: dataset.transform
	Place     int32  `col:"place"`     // in the chain, from 0; -1 the chain itself
	Path      string `col:"path"`      // where it is: dataset.transform.transforms[0]
	Class     string `col:"class"`     // or the qualified name of a function
	File      string `col:"file"`      // of the code that a call of it runs; "" not known
	Line      int32  `col:"line"`      // in File
	// why it is not timed; "" it is. "Python 3.11", "free-threaded": this interpreter cannot tell. two such chains: calls of them could
	// not be told apart. not written in Python, a generator, wrapped (the code of a decorator, which others have too), its own forward:
	// there is no code of its own
	Why string `col:"why"`
}

// Pin is what the step that pins batches (DataLoader(pin_memory=True), where there is an accelerator) has left as it was in one
// batch: of the first two of a loader's first pass, and of the first of its later passes. torch pins tensors, goes into mappings and
// sequences, calls the pin_memory() of what has one, and hands on anything else unchanged, with the tensors in it. Tensors that are
// not in the memory of the processors (CPU) are not counted. A field is followed by [] (a list or tuple of tensors), {} (a dict of them) or
// ? (something else), where it is not a tensor itself. What was left may be pinned nevertheless: getattr, its class answers for any
// attribute; container, it has its own way to its items; large, more than was looked at; replaced, another function pins.
type Pin struct {
	Head                // ts_ns: the batch was handed over
	Loader       uint32 `col:"loader"`        // of this process
	Pass         uint32 `col:"pass"`          // of this loader, from 0
	Batch        uint32 `col:"batch"`         // as in BatchNext
	Class        string `col:"class"`         // of the batch
	Reached      int32  `col:"reached"`       // tensors, and objects that pin themselves, that the step got to
	ReachedBytes int64  `col:"reached_bytes"` // of these tensors
	Left         int32  `col:"left"`          // tensors in what was left as it was
	LeftBytes    int64  `col:"left_bytes"`    // of these
	LargestBytes int64  `col:"largest_bytes"` // the largest of these, or where there are none of the arrays
	Pinned       int32  `col:"pinned"`        // of these: in pinned memory nevertheless
	Arrays       int32  `col:"arrays"`        // NumPy's, which the step does not pin either
	ArrayBytes   int64  `col:"array_bytes"`   // of these
	Holder       string `col:"holder"`        // class of what was left and holds most; or NumPy's of arrays
	Path         string `col:"path"`          // from the batch to it; "" it is the batch
	Fields       string `col:"fields"`        // its attributes that hold these tensors, as above, with commas between
	Made         string `col:"made"`          // of its class: dataclass, frozen (a dataclass that is), "" anything else
	Unsure       string `col:"unsure"`        // why it may be pinned nevertheless, as above; "" it is not
	Pins         string `col:"pins"`          // file:line of a function of the program's that calls pin_memory() by itself; "" none was found
}

// BatchNext is one delivery to the training loop, or its failure; or (exit) the
// end of a process that was delivered any. What it says of the training loop is
// of the time since the row before of the same process, whatever its loader, and
// before next() was called; of exit since the last row.
type BatchNext struct {
	Head             // ts_ns: next() returns
	Loader    uint32 `col:"loader"`     // Loader.Loader of the same process; 0 at exit
	Pass      uint32 `col:"pass"`       // Pass.Pass
	Batch     uint32 `col:"batch"`      // number of the delivery in its pass, from 0
	Worker    int32  `col:"worker"`     // -1 main process, -2 unknown
	Status    string `col:"status"`     // ok, stop, error, exit
	CallNS    int64  `col:"call_ns"`    // next() was called
	ArrivedNS int64  `col:"arrived_ns"` // the batch came out of the queue; 0 unknown
	Steps     uint64 `col:"steps"`      // optimizer steps of this process so far
	Optimizer uint32 `col:"optimizer"`  // the one that stepped last, of those that train (Watched); 0 none
	Grad      bool   `col:"grad"`       // torch.is_grad_enabled() at next()
	Backwards uint64 `col:"backwards"`  // backward calls of this process so far
	// The steps used the gradients of the backward calls after the first so many, up to so many: those since the optimizer's
	// gradients were last thrown away. 0, 0: none did. A step of an optimizer over anything but modules' parameters that are
	// older than the last delivery is none.
	GradsFrom uint64 `col:"grads_from"`
	GradsTo   uint64 `col:"grads_to"` // see there
	// another number after each load_state_dict of an optimizer or of a module that is trained; weights that are put in and
	// taken out again without a step between have the number of before
	Restarts   uint32 `col:"restarts"`
	Rows       int32  `col:"rows"`       // first dimension of the first array in the batch; -1 unknown
	GradOff    bool   `col:"grad_off"`   // grad mode was switched off: no_grad, inference_mode, set_grad_enabled(False)
	Evaluating bool   `col:"evaluating"` // eval() was called on a module that is trained, or it still is in evaluation mode
	Alone      bool   `col:"alone"`      // a batch norm in training mode was given one row, after a batch of one row
	Watched    bool   `col:"watched"`    // Backwards and what follows is known: no older trace, and no gradients that come from elsewhere
	Thread     uint32 `col:"thread"`     // that called next(): low bits of its identity; 0 not known
}

// RngSlot is one generator as the program names it. Slots are numbered per process.
type RngSlot struct {
	Head
	Slot  uint32 `col:"slot"`  // number in its process
	Path  string `col:"path"`  // numpy, random, torch, dataset.transform.rng, collate_fn.keywords['rng'], pkg.aug.RNG
	Kind  string `col:"kind"`  // mt19937 (NumPy, Python and torch), pcg64, pcg64dxsm, philox, sfc64, cv2, sobol (also Halton)
	Class string `col:"class"` // of the generator object
	Owner string `col:"owner"` // class of the object (or the module) that holds it
	// global, dataset, transform, collate, iterator, module, process (found by its type, not from the dataset), order (samplers,
	// shufflers, splits)
	Role string `col:"role"`
	File string `col:"file"` // the line that assigns it, if there is exactly one; else ""
	Line int32  `col:"line"` // in File; 0 unknown
}

// RngState is the state of a slot at one moment. Rows are never sampled; an
// "after" row is written only if the fetch changed the state.
type RngState struct {
	Head
	Slot   uint32 `col:"slot"`   // RngSlot.Slot of the same process
	Loader uint32 `col:"loader"` // as in BatchFetch
	Pass   uint32 `col:"pass"`   // as in BatchFetch
	Worker int32  `col:"worker"` // as in BatchFetch
	Fetch  uint32 `col:"fetch"`  // the fetch that it belongs to
	// begin (fetcher made, after worker_init_fn), found (first sight of a generator found after a fetch), before (entering
	// a fetch, if changed since the last row), after (leaving it), end (of a worker's pass: fetch is its last one; what did
	// not change since the row before has ended each fetch in that state), fork, task, end (of children that are no
	// DataLoader workers)
	When string `col:"when"`
	Pos  int64  `col:"pos"` // MT19937: words of the block already used, 0..624; else 0
	ID   []byte `col:"id"`  // MT19937: words 1..4 of the key, little endian, 16 bytes; else empty
	// the whole state (FORMAT.md, "Generator states"); MT19937: only in the first row of a block, and not in before and
	// after rows of fetches from 1 on
	Raw   []byte `col:"raw"`
	DurNS int64  `col:"dur_ns"` // time since the row before it in this slot, or of the fetch: bounds how much can have been drawn
}

// RngSearch is one search for generators: what it did not look at, a row for
// each reason, or one row without a reason if it was complete.
type RngSearch struct {
	Head
	Loader uint32 `col:"loader"` // the loader that was about to be gone through; in its workers 0, as in BatchFetch
	Pass   uint32 `col:"pass"`   // as in BatchFetch
	Worker int32  `col:"worker"` // -1 main process: what process has found there, workers that it forks have too
	Fetch  uint32 `col:"fetch"`  // fetches of the pass before it
	// walk (from the dataset and the collate function), process (all objects of the process, by type; not made anew for each
	// pass: the last one before a pass counts), code (what fetches run: a row only where it is not complete)
	Way     string `col:"way"`
	Objects uint64 `col:"objects"` // looked at
	Found   uint32 `col:"found"`   // generators; of process only those that the walk has not found
	// "" (complete), nodes (the walk has ended after so many objects), items (of a container, or of a cache), modules, barred
	// (the class has something of its own in the place of __dict__), type (of a library written in C), unreadable (a generator
	// whose state cannot be read); of process: objects (too many), time, frozen (by gc.freeze), children (it would have had
	// memory copied that living children share), names (too many generators); of code: anew (a generator is made in each call,
	// from the seed that Path tells)
	Why  string `col:"why"`
	Path string `col:"path"` // where, of the first
	Left uint64 `col:"left"` // how many were not looked at; 0 unknown
}

// Dataset is a dataset that samples come from: of a loader, or inside of torch's
// Subset and ConcatDataset, which are no datasets here.
type Dataset struct {
	Head
	Dataset uint32 `col:"dataset"` // from 1 in its process, never reused: one for each object
	Class   string `col:"class"`   // qualified name
	Length  int64  `col:"length"`  // samples; -1 unknown

	Sizes  []int64 `col:"sizes"`  // items of the containers and arrays that hang on it, each number once
	Counts string  `col:"counts"` // numbers in dictionaries that hang on it: header.rows=120, with commas between
}

// Attribute is a value that hangs on a dataset, a transform or a collate
// function, or that their code names, at one moment. Of persistent workers: as
// each pass begins, in their parent and in the workers (only those that have
// changed since the row before, of the same process). Of runs of several ranks:
// scalars and containers of the dataset, once. Of map-style datasets: what
// changes between two passes, whoever makes them.
type Attribute struct {
	Head
	Loader uint32 `col:"loader"` // as in BatchFetch
	Pass   uint32 `col:"pass"`   // as in BatchFetch
	Worker int32  `col:"worker"` // number in its pass; -1 the main process
	// iter (the parent, as a pass begins), fetch (a worker, before its first fetch of the pass), rank (the parent, at the
	// first pass of a run of several ranks); of the parent, from the second pass on: missed (it was not compared, or not all
	// of it: value says why, or nothing where it is too large or cannot be looked into), shared (all processes see it
	// change; value: changed, "" it cannot be told); at the first pass of an IterableDataset: held x
	When    string `col:"when"`
	Dataset uint32 `col:"dataset"` // at rank and begin: Dataset.Dataset; else 0
	Path    string `col:"path"`    // as the program names it: dataset.epoch
	Class   string `col:"class"`   // of the value; "" (iter, fetch): there is no such attribute any more
	// of a scalar and of short lists and arrays of numbers, as repr gives it; of a function, its qualified name; of another
	// object, its class (iter, fetch); at most 64 bytes; "" it is something else
	Value string `col:"value"`
	Items int64  `col:"items"` // of a container: items, or bytes of an array (iter: elements); else 0
	Whole bool   `col:"whole"` // the digests are of all items; else of some, spread evenly
	// BLAKE2b-128 of the items in their order (iter, fetch: of some, and of what they hold); empty: not taken (iter: it has
	// changed where the workers do not look)
	Ordered   []byte `col:"ordered"`
	Unordered []byte `col:"unordered"` // of the items in a canonical order: equal for permutations; empty: not taken
	Read      string `col:"read"`      // the code that fetches reads it of this object: yes, no; "" not known, or not asked
	File      string `col:"file"`      // the line that assigns it, if there is exactly one; else ""
	Line      int32  `col:"line"`      // in File
}

// Digest is what some samples of a fetch contain, as they left the dataset,
// before they were collated. Which ones: as far as time allows, the first 32 of
// each worker and pass whole, then positions (of an IterableDataset) or indices
// that are multiples of a power of two. FORMAT.md, "Digests", says of what.
type Digest struct {
	Head
	Loader    uint32  `col:"loader"`    // as in BatchFetch
	Pass      uint32  `col:"pass"`      // as in BatchFetch
	Worker    int32   `col:"worker"`    // as in BatchFetch
	Batch     uint32  `col:"batch"`     // as in BatchFetch
	Fetch     uint32  `col:"fetch"`     // as in BatchFetch
	Positions []int64 `col:"positions"` // of each sample among those of its worker in this pass, from 0
	Indices   []int64 `col:"indices"`   // in the dataset; empty: an IterableDataset, or keys that are no integers
	// of each sample: 1 all of its content went into Contents, 2 chunks of it, +4 there is next to nothing in it (all
	// bytes equal), +8 Metas is of strings too, +16 Metas is of integers only, +32 some of it could not be read and is
	// left out, +64 it is the sample before it in the fetch, of the index before, but for some rows at the beginning of an
	// array and others at its end: windows of one series (looked for in the first 32 samples of a worker and pass), +128
	// it has less than 1 KiB: it may be no more than the name of what the collate function reads
	Kinds    []byte `col:"kinds"`
	Contents []byte `col:"contents"` // of each sample: BLAKE2b-128
	// of each sample: BLAKE2b-128 of its strings and integers alone, which augmentation leaves as they are; zeros: it has
	// none
	Metas []byte `col:"metas"`
	// of each sample what became of it in the batch, its row, where the sample is short and the collate function the
	// program's own; else empty. 0: it is not to be seen in the batch, else as Kinds
	RowKinds []byte `col:"row_kinds"`
	Rows     []byte `col:"rows"` // BLAKE2b-128 of that row, large arrays by pieces
	// with the first of a pass: what the parts are called, with commas between; "" they differ, or are not told
	Names string `col:"names"`
	// of each sample how many parts of it have digests of their own: its first 12 leaves, if it has several
	Counts []byte `col:"part_counts"`
	// of each part 8 bytes of BLAKE2b, but for the lowest 3 bits of the first: +1 of pieces of it; 0 an array or a list of
	// numbers, 2 an integer, 4 a text, 6 another single value
	Parts []byte `col:"parts"`
}

// Leftover is samples of an IterableDataset that a worker had taken when it
// came to the end, and that drop_last dropped.
type Leftover struct {
	Head
	Loader  uint32 `col:"loader"`  // as in BatchFetch
	Pass    uint32 `col:"pass"`    // as in BatchFetch
	Worker  int32  `col:"worker"`  // as in BatchFetch
	Samples int32  `col:"samples"` // dropped
}

// Opened is a data file that a process of the run has opened for reading:
// regular files outside of the system's and of Python's folders.
type Opened struct {
	Head          // proc: which
	Path   string `col:"path"`   // absolute; "" (proc 0): all opens of files beyond the first 4,096 of each process
	Count  uint64 `col:"count"`  // how often so far; 0 not known
	Source string `col:"source"` // fd (seen in /proc/PID/fd), kernel (its tracepoint)
	Site   uint32 `col:"site"`   // CallSite.Site of what opened it first; 0: not looked at, as in forked processes, or not known
}

// BatchBytes is what a worker's batch takes of shared memory, as its fetch ends: of the first one of each worker and pass.
type BatchBytes struct {
	Head
	Loader  uint32 `col:"loader"`  // as in BatchFetch
	Pass    uint32 `col:"pass"`    // as in BatchFetch
	Worker  int32  `col:"worker"`  // as in BatchFetch
	Batch   uint32 `col:"batch"`   // as in BatchFetch
	Fetch   uint32 `col:"fetch"`   // as in BatchFetch
	Bytes   int64  `col:"bytes"`   // of the storages of its tensors on the CPU, each counted once, in whole pages
	Tensors int32  `col:"tensors"` // storages
	// bytes of Bytes by dtype, the greatest first: float32=38535168,int64=4096
	Dtypes string `col:"dtypes"`
	// of Bytes: storages that were in shared memory already, and not by this worker: of a tensor that the dataset shares. They take
	// nothing more
	Shared int64 `col:"shared"`
	Whole  bool  `col:"whole"` // all of the batch could be looked at: no object of a class of the program's own, not too many
	// torch.multiprocessing's: file_descriptor, file_system; "" not known
	Sharing string `col:"sharing"`
}

// SetEpoch is a call of set_epoch of a distributed sampler.
type SetEpoch struct {
	Head
	SamplerID uint32 `col:"sampler_id"` // Loader.SamplerID of the same process
	Epoch     int64  `col:"epoch"`      // that was set
	File      string `col:"file"`       // who called, outside torch
	Line      int32  `col:"line"`       // in File
}

// Optimizer is an optimizer seen stepping for the first time.
type Optimizer struct {
	Head
	Optimizer uint32 `col:"optimizer"` // from 1 in its process, never reused
	Class     string `col:"class"`     // qualified name
	Params    int64  `col:"params"`    // tensors that it is over
	Trains    string `col:"trains"`    // parameters of modules are among them: yes, no; "" of an older trace
	Batches   int64  `col:"batches"`   // that had been delivered in its process when it was made
}

// Exception is what a fetch, a collate function or next() raised.
type Exception struct {
	Head
	Loader  uint32 `col:"loader"`  // as in BatchFetch
	Pass    uint32 `col:"pass"`    // as in BatchFetch
	Worker  int32  `col:"worker"`  // as in BatchFetch
	Batch   uint32 `col:"batch"`   // as in BatchFetch
	Stage   string `col:"stage"`   // fetch, collate, next; exit (nobody caught it and the process ended; loader and pass are 0, worker is -1)
	Sample  int64  `col:"sample"`  // index; -1 unknown
	Type    string `col:"type"`    // qualified name
	Message string `col:"message"` // at most 500 characters
	File    string `col:"file"`    // innermost frame
	Line    int32  `col:"line"`    // in File
	Func    string `col:"func"`    // innermost function
	// of one that says that no descriptor is left (too many open files): those that the process had open then; else 0
	Open   int64 `col:"open"`
	Limit  int64 `col:"limit"`  // how many it might have (RLIMIT_NOFILE, the soft limit)
	Shared int64 `col:"shared"` // of Open, torch's shared memory
}

// Dist is what torch.distributed was seen to do in a process.
type Dist struct {
	Head
	// ddp, fsdp; group (the program made a process group of its own that this rank is in), mesh (it made a DeviceMesh),
	// mesh_dim (this rank's group along one dimension of a mesh), join (a Join context was entered; no ranks), init (the
	// default process group is up), reduce (gradients were reduced by hand, seen at the optimizer's step), exchange (the
	// program exchanged something else itself), meet (it called a function of torch.distributed between a batch and the
	// step on it, for the first time), end (the process ends)
	Op string `col:"op"`
	// of the wrapped model; names of the mesh's dimensions, joined by commas; of exchange: objects, or the function of
	// torch.distributed; of meet: the function; of end: the one that raised last, "" none
	Class   string  `col:"class"`
	Backend string  `col:"backend"` // nccl, gloo and so on
	Ranks   []int64 `col:"ranks"`   // global ranks: whose gradients are reduced together (ddp, fsdp, reduce), of the group, of the mesh
	Calls   uint32  `col:"calls"`   // of end: of torch.distributed's functions, no barriers, that the program called after the last batch
	Before  uint32  `col:"before"`  // of end: calls of Class that had returned
}

// Memory is a process's memory and CPU time from procfs.
type Memory struct {
	Head
	Rss          int64  `col:"rss"`           // resident
	Pss          int64  `col:"pss"`           // resident, shared pages divided by their users
	PrivateDirty int64  `col:"private_dirty"` // as smaps_rollup says; 0 from statm, here and below
	PrivateClean int64  `col:"private_clean"` // as smaps_rollup says
	SharedDirty  int64  `col:"shared_dirty"`  // as smaps_rollup says
	SharedClean  int64  `col:"shared_clean"`  // as smaps_rollup says
	Anonymous    int64  `col:"anonymous"`     // not of a file
	Swap         int64  `col:"swap"`          // swapped out
	CPUNS        int64  `col:"cpu_ns"`        // user + system so far
	Threads      int32  `col:"threads"`       // number of threads
	Source       string `col:"source"`        // smaps_rollup, statm
	MainNS       int64  `col:"main_ns"`       // for which the thread that the process began with has run so far (schedstat); 0 not known
	DelayNS      int64  `col:"delay_ns"`      // for which that thread could have run, and waited for a processor
	ReadBytes    int64  `col:"read_bytes"`    // that the process has read from disks so far; -1 not known, 0 of an older trace
}

// Cpu is how many processors the run may use, and how much of their time it was
// refused: of the control group with the tightest quota from the target's own
// upwards, and of the processors that the target may run on.
type Cpu struct {
	Head               // proc: 0
	Allowed     int32  `col:"allowed"`      // processors that the target may run on (its affinity)
	Processors  int64  `col:"processors"`   // thousandths of a processor that it may use: Allowed, or the quota where that is less
	Path        string `col:"path"`         // of the control group whose quota that is; "" none is less than Allowed
	Periods     int64  `col:"periods"`      // of that quota so far, in which the group ran; -1 not known, or no quota
	Throttled   int64  `col:"throttled"`    // periods in which the group had used it up and was stopped; -1 not known, or no quota
	ThrottledNS int64  `col:"throttled_ns"` // for how long it was stopped so far, all processors added up; -1 not known, or no quota
	IdleNS      int64  `col:"idle_ns"`      // that the machine's processors had nothing to do so far, all added up; 0 not known
	Online      int32  `col:"online"`       // processors of the machine; 0 not known
}

// Limit is how much memory may be used and how much is: of the control group
// with the tightest limit from the target's own upwards (of the own one, with
// limit 0, if none has a limit below the machine's memory), and of the machine.
type Limit struct {
	Head         // proc: 0
	Scope string `col:"scope"` // cgroup, host
	Path  string `col:"path"`  // of the control group, in its hierarchy
	Limit int64  `col:"limit"` // bytes; 0: none of its own
	Usage int64  `col:"usage"` // bytes; host: all but what is available without swapping
	// processes that the out-of-memory killer has ended so far, in the group or (host) on the machine, control groups
	// included; -1 not known
	OomKills int64 `col:"oom_kills"`
}

// Signal is a signal that was sent to a process of the run (kernel tier).
// Signals that end nothing and are sent all the time (CHLD, CONT, URG, WINCH,
// timers) are left out.
type Signal struct {
	Head                  // proc: to whom
	Signal         int32  `col:"signal"`          // number
	SiCode         int32  `col:"si_code"`         // si_code: 0 kill(2), -6 tgkill(2), 128 the kernel, 1 and more: a fault
	SenderPid      int32  `col:"sender_pid"`      // 0: the kernel, or a process outside of the recorder's pid namespace
	SenderComm     string `col:"sender_comm"`     // its name, at most 15 bytes; "" the kernel
	SenderCmdline  string `col:"sender_cmdline"`  // if it was still there to be asked
	SenderProc     uint32 `col:"sender_proc"`     // 0: it is not of the run
	SenderAncestor bool   `col:"sender_ancestor"` // it is the process itself, or an ancestor of it within the run
	Address        uint64 `col:"address"`         // that was accessed, of a fault; else 0
	Mapping        string `col:"mapping"`         // what is mapped there: heap, stack, anon, file, shm, none; "" no fault
	MappingPath    string `col:"mapping_path"`    // of file and shm
	FileSize       int64  `col:"file_size"`       // of that file, bytes; 0 not known, or it is empty
	FileOffset     int64  `col:"file_offset"`     // where in it the address is; behind file_size: the file became shorter
	ShmCapacity    int64  `col:"shm_capacity"`    // of shm: what its file system may hold, bytes; 0 not known, or no limit
	// what it held, but for what the processors had not yet added up (each 32 pages, or twice as many as there are processors)
	ShmUsed int64 `col:"shm_used"`
}

// Oom is a process that the out-of-memory killer has chosen (kernel tier).
type Oom struct {
	Head
	Comm string `col:"comm"` // its name
}

// Cow is memory that a process of the run has copied from its parent by writing
// to it (kernel tier, x86-64): write faults on pages that were present, in a
// process that was forked and has called neither exec nor fork since. Numbers
// count from the fork on; there is a row for each kind of mapping.
type Cow struct {
	Head
	// heap, anon, stack, file (private, of a file), shm (no copy: shared), new (was not there at the fork), unknown,
	// parent (faults of a process that has forked itself: what was copied and what was only write-protected cannot be told
	// apart; no blocks)
	Mapping string  `col:"mapping"`
	User    uint64  `col:"user"`   // pages written to by the program
	Kernel  uint64  `col:"kernel"` // pages written to by system calls
	Blocks  []int64 `col:"blocks"` // 2 MiB blocks (address / 2^21) whose count has changed since the row before
	Pages   []int64 `col:"pages"`  // of each block, user and kernel together
	Final   bool    `col:"final"`  // the process has ended
}

// Extent is a container of Python objects that forked workers inherit with
// their dataset, or other forked processes with what they run and its arguments,
// and the memory that the objects lie on.
type Extent struct {
	Head            // proc: the main process
	Extent  uint32  `col:"extent"`  // from 1 in its process
	Loader  uint32  `col:"loader"`  // Loader.Loader; 0: it is left to a process that is no worker
	Target  string  `col:"target"`  // what that process runs: its qualified name; "" with a loader
	Pass    uint32  `col:"pass"`    // before whose workers were started
	Path    string  `col:"path"`    // as the program names it: dataset.records, args[0].records, self.records, data.RECORDS
	Class   string  `col:"class"`   // of the container
	Items   int64   `col:"items"`   // length of the container
	Sampled int64   `col:"sampled"` // objects whose addresses were taken, spread over all items
	Starts  []int64 `col:"starts"`  // runs of 2 MiB blocks that hold such objects: the first block of each
	Counts  []int64 `col:"counts"`  // blocks in each run
	// bytes of all pages that the objects begin on, by estimate: as much as their use can copy at most; 0 not known
	Plateau int64 `col:"plateau"`
}

// Private is how much of an extent a worker has to itself, by its own
// /proc/self/pagemap; or another forked process, or their parent.
type Private struct {
	Head          // proc: the worker
	Pass   uint32 `col:"pass"`   // as in BatchFetch; 0 of other processes
	Worker int32  `col:"worker"` // as in BatchFetch; -1: of another process
	Fetch  uint32 `col:"fetch"`  // fetches done before, in this pass of this worker; of others batches delivered to them
	// begin (fetcher made, process forked), window, end; held: a process that Parent has forked has ended, and Parent, whose
	// row it is, was seen to hold the same container still
	When    string `col:"when"`
	Extent  uint32 `col:"extent"`  // Extent.Extent of the parent; 0: all that the process inherited of its dataset, or its arguments
	Parent  int32  `col:"parent"`  // pid of the process that Extent counts in
	Present int64  `col:"present"` // bytes of it in memory
	Private int64  `col:"private"` // bytes of it that no other process maps
	DurNS   int64  `col:"dur_ns"`  // how long looking took
}

// ShmRoom is how much room there is in /dev/shm, where processes of the run see a file system of its own there: as the recording
// begins and ends, as processes begin, and when it has changed by a hundredth of the capacity.
type ShmRoom struct {
	Head            // proc: through whose root it was looked at
	Device   int64  `col:"device"`   // of the file system (st_dev): the same in all processes that share it
	Type     string `col:"type"`     // of it: tmpfs, other
	Capacity int64  `col:"capacity"` // bytes
	Free     int64  `col:"free"`     // bytes
	Nodes    int64  `col:"nodes"`    // files that may still be made; -1 no limit
}

// ShmFile is a file that lies in /dev/shm as the recording begins, or as it ends: the largest ones.
type ShmFile struct {
	Head          // proc: of the run, that made it, by its name; 0 another one, or not known
	Device int64  `col:"device"` // as in ShmRoom
	Name   string `col:"name"`   // under /dev/shm
	Bytes  int64  `col:"bytes"`  // that it takes
	Pid    int32  `col:"pid"`    // that its name tells (torch's); 0 none
	// alive, dead (no such process is there), held (dead, and another process has it open or mapped); "" not known
	Owner string `col:"owner"`
	Phase string `col:"phase"` // begin, end
	Links int32  `col:"links"` // hard links
	More  uint32 `col:"more"`  // files beside those that are told, in the row of the last one
}

// ShmUse is what a process of the run has done in /dev/shm so far (kernel tier).
type ShmUse struct {
	Head           // proc: which
	Device  int64  `col:"device"`  // as in ShmRoom
	Made    uint64 `col:"made"`    // files
	Removed uint64 `col:"removed"` // names, whatever the device: of absolute paths
	Sized   uint64 `col:"sized"`   // calls of ftruncate, fallocate and write that made a file longer
	Bytes   int64  `col:"bytes"`   // by which they made them longer, all added up
	Failed  uint64 `col:"failed"`  // calls that failed for want of room, ENOSPC
	Final   bool   `col:"final"`   // the process has ended
}

// ShmFull is a call that found no room in /dev/shm (kernel tier): the first 64 of each process.
type ShmFull struct {
	Head            // proc: whose
	Device   int64  `col:"device"`   // as in ShmRoom
	Call     string `col:"call"`     // open, ftruncate, fallocate, write
	Name     string `col:"name"`     // of the file, at most 39 bytes
	Bytes    int64  `col:"bytes"`    // that were asked for; open: 0
	Capacity int64  `col:"capacity"` // of the file system, bytes; 0 not known, or no limit
	Used     int64  `col:"used"`     // of it, as in Signal.ShmUsed
}

// Position is what one process did to the position of an open file that it
// shares with other processes of the run: an open file description that was
// inherited (lseek(2) and read(2) move it for all of them). Counts are from the
// fork on; later rows of the same file and process have later counts.
type Position struct {
	Head        // proc: which
	File uint32 `col:"file"` // the open file, from 1 in its part and source
	Path string `col:"path"` // absolute; without a slash only the name is known
	Fd   int32  `col:"fd"`   // its descriptor in the process
	// inherited: the parent has the same open file; shared: another process has, the parent no more; "": it is the parent
	Origin string `col:"origin"`
	Seeks  uint64 `col:"seeks"` // lseek, but for those that only ask for the position; 0 of fdinfo, here and below
	Reads  uint64 `col:"reads"` // read, readv
	Turns  uint64 `col:"turns"` // seeks and reads before which another process had moved the position
	// reads that began elsewhere than where the process had sought right before, as another process had moved the position
	// between the two, and times that it asked for the position then; those that it did again at once are not among them
	Taken  uint64 `col:"taken"`
	Places uint64 `col:"places"` // of Taken those that had sought another place than the one before of the same process
	Sought int64  `col:"sought"` // offset that the last of Taken had sought; -1: there is none
	Again  uint64 `col:"again"`  // reads that began elsewhere, after which the process sought the same place once more
	Loose  uint64 `col:"loose"`  // reads without a seek of their own, from where another process had left the position
	Asked  uint64 `col:"asked"`  // times it asked for the position, after a read, where another process had left it
	Looks  uint64 `col:"looks"`  // of fdinfo: how often the position was looked at; 0 of kernel, here and below
	Moved  uint64 `col:"moved"`  // looks at which it was another one than before
	Back   uint64 `col:"back"`   // of them those at which it was smaller
	Source string `col:"source"` // kernel (its tracepoint), fdinfo (/proc/PID/fdinfo: who moves it is not seen)
	Final  bool   `col:"final"`  // the process or the recording has ended
}

// OffCpu is what the first thread of a process has waited for whenever it had given up its processor, all added up since the process began
// (kernel tier). The time for which it could have run and had no processor is left out, but for that after its last wait.
type OffCpu struct {
	Head            // proc: which
	Inherits  bool  `col:"inherits"`   // it was forked and has not called exec
	ReadNS    int64 `col:"read_ns"`    // for bytes of a file or a block device, in read(2) and its kind
	PageNS    int64 `col:"page_ns"`    // for a page of a mapping, or of memory that was swapped out
	NameNS    int64 `col:"name_ns"`    // for a file by its name: open, stat, reading folders
	ChannelNS int64 `col:"channel_ns"` // for a pipe, a socket or a device: poll, recv; a worker waits for its next index so
	LockNS    int64 `col:"lock_ns"`    // futex(2): for a lock, or another thread
	SleepNS   int64 `col:"sleep_ns"`   // nanosleep, and select without descriptors
	ChildNS   int64 `col:"child_ns"`   // for a child's end
	WriteNS   int64 `col:"write_ns"`   // writing to files, fsync
	OtherNS   int64 `col:"other_ns"`   // in other system calls, or stopped by a signal or a debugger
	Final     bool  `col:"final"`      // the process has ended
}

// Descriptor is how many descriptors a process has open, and how many it may
// have.
type Descriptor struct {
	Head          // proc: which
	Open   int64  `col:"open"`   // descriptors; 0 not counted
	Limit  int64  `col:"limit"`  // RLIMIT_NOFILE, the soft limit; 0 not known
	Hard   int64  `col:"hard"`   // RLIMIT_NOFILE, as far as the soft limit may be raised; 0 not known
	Looked int64  `col:"looked"` // of Open, those that were asked what they are: the highest numbers; 0: none, and the columns below are 0
	Shared int64  `col:"shared"` // of Looked: torch's shared memory
	Socket int64  `col:"socket"` // of Looked: sockets
	Pipe   int64  `col:"pipe"`   // of Looked: pipes
	File   int64  `col:"file"`   // of Looked: other regular files, and folders
	Other  int64  `col:"other"`  // of Looked: devices, epoll, events and such
	Sample string `col:"sample"` // path of one of File, of which there are most of the same folder or name; "" none
	// system calls that have failed so far because the process had no descriptor left (EMFILE), of rows of the kernel tier, whose
	// other columns are 0; else -1
	Refused int64 `col:"refused"`
}

// Container is one that has grown since the first look at it: a list, dict, set, deque or cache of a function, an array, tensor or
// text, that a dataset, collate function, sampler or training loop reaches. There is a row for each look, of the dozen that grew most.
type Container struct {
	Head               // proc: whose it is; ts_ns: the begin of the look
	Loader      uint32 `col:"loader"`       // as in BatchFetch; of the main process the one whose batch was handed over
	Pass        uint32 `col:"pass"`         // as in BatchFetch
	Worker      int32  `col:"worker"`       // -1: the main process
	Served      int64  `col:"served"`       // batches so far, in all passes: fetched by the worker, handed to the loop by all loaders
	Path        string `col:"path"`         // as the program calls it: dataset.cache['x']; dataset.rows[*] of many side by side
	Function    string `col:"function"`     // whose variable the path begins with: __main__.main; "" it begins with a root or a module
	Class       string `col:"class"`        // without builtins
	Items       int64  `col:"items"`        // its length now; of an array or tensor its elements, of a text characters
	FirstItems  int64  `col:"first_items"`  // at the first look that found it; 0: it was made since the first look of the process
	FirstServed int64  `col:"first_served"` // Served at that look
	AddedBytes  int64  `col:"added_bytes"`  // of what was added since, by estimate from the newest items
	SharedBytes int64  `col:"shared_bytes"` // besides, in shared memory
	Graph       bool   `col:"graph"`        // tensors among them hold the graph that they were computed by (grad_fn)
	Cap         int64  `col:"cap"`          // maxsize or maxlen; -1: none
	// what the code that can be reached has that may end the growth: removes, measures (len), compares, replaces; unknown: no code was
	// found that names it; "" nothing
	Bound string `col:"bound"`
}

// Footprint is the memory of a process as it looked at its containers.
type Footprint struct {
	Head              // as in Container
	Loader     uint32 `col:"loader"`     // as in Container
	Pass       uint32 `col:"pass"`       // as in Container
	Worker     int32  `col:"worker"`     // as in Container
	Served     int64  `col:"served"`     // as in Container
	When       string `col:"when"`       // window, begin or end of a pass
	Anon       int64  `col:"anon"`       // bytes, by /proc/self/status; what is copied of inherited pages has always been in it; -1 not known
	File       int64  `col:"file"`       // of mapped files
	Shm        int64  `col:"shm"`        // of shared memory
	Swap       int64  `col:"swap"`       // swapped out
	Containers int64  `col:"containers"` // that were looked at
	Cut        string `col:"cut"`        // why some were not: objects, containers, time; "" all that were reached were
}

// CudaLibrary is a library of CUDA that calls of the run's processes are watched in, or could not be (kernel tier).
type CudaLibrary struct {
	Head           // proc: that has it mapped; 0: it was found before any process had, and watched from the start of each on
	Library string `col:"library"` // driver (libcuda), runtime (libcudart)
	Path    string `col:"path"`    // as the recorder sees it
	// the process had it mapped before it was watched: what it had allocated and copied until then is not known
	Late    bool   `col:"late"`
	Watched uint32 `col:"watched"` // functions
	// of them those that are watched behind their first instruction, as the kernel would have to step over that one (the
	// stubs that libcuda exports since CUDA 11)
	Shifted uint32 `col:"shifted"`
	How     string `col:"how"`  // multi (uprobe_multi, since Linux 6.6), single (a perf uprobe each); "" it is not watched
	Note    string `col:"note"` // why not; functions that it lacks, separated by spaces
}

// HostMemory is memory that the CUDA driver was told to know, by a call that succeeded (kernel tier): a device reads pinned
// memory by itself, while it goes on with the program.
type HostMemory struct {
	Head
	// pinned (made by cuMemHostAlloc, cuMemAllocHost), registered (cuMemHostRegister: made by the program), managed
	// (cuMemAllocManaged: moves by itself), freed (cuMemFreeHost), unregistered (cuMemHostUnregister)
	What    string `col:"what"`
	Address uint64 `col:"address"` // where it begins
	Bytes   int64  `col:"bytes"`   // 0 of what is freed or unregistered
}

// Copy is a copy of more than 64 KiB between the memory of the host and of a device, as the CUDA driver was asked for it
// (kernel tier), or as torch was (record --copies). Smaller ones are only counted (CudaCalls): the driver takes them over without letting
// the caller wait. Of a process that has rows of both kinds those of the driver count: the others are the same copies.
type Copy struct {
	Head            // ts_ns: when the call began
	Thread   int32  `col:"thread"`   // its id, as the kernel counts (the initial pid namespace)
	Main     bool   `col:"main"`     // it is the first thread of its process
	Function string `col:"function"` // of the driver: cuMemcpyHtoDAsync_v2; of torch: Tensor.to, Tensor.cuda, Tensor.copy_
	// to-device, to-host, device (within or between devices), host; "" the call does not tell: its addresses are of any memory
	Direction string `col:"direction"`
	Source    uint64 `col:"source"`    // address; by the hook: of the tensor that was to be copied
	Target    uint64 `col:"target"`    // address
	Bytes     int64  `col:"bytes"`     // that are copied
	Rows      int64  `col:"rows"`      // of a copy in two dimensions, or copies of one call: bytes are those of all; else 1
	Async     bool   `col:"async"`     // by its name the call need not wait; by the hook: non_blocking=True was asked for
	Stream    uint64 `col:"stream"`    // handle; 0 the default stream
	CallNS    int64  `col:"call_ns"`   // how long the call took; by the hook: torch's, with what it waits for
	Result    int32  `col:"result"`    // CUresult; 0 it succeeded
	Capturing bool   `col:"capturing"` // the thread is capturing a graph: nothing is copied now
	// the thread's next call of those that are watched: stream-sync (it waits for the copy's stream), other-stream-sync,
	// context-sync (it waits for all streams), event-sync, event (cuEventRecord, cuStreamWaitEvent), launch (of a kernel or a
	// graph), copy, memory; "" there was none
	Next   string `col:"next"`
	GapNS  int64  `col:"gap_ns"`  // from the end of the copy's call to the beginning of the next one; -1 there was none
	NextNS int64  `col:"next_ns"` // how long the next one took, of those that wait; else 0
	// stream of the latest launch of a kernel by this thread before: same (as the copy's), other; "" there was none
	Compute string `col:"compute"`
	// who asked for it: CallSite.Site, where that is known; 0 not looked at: of copies that follow each other in less than 0.1 ms
	// one in 16 is, beyond the first 64
	Site   uint32 `col:"site"`
	SeenBy string `col:"seen_by"` // driver (kernel tier), hook (torch's methods); "" of an older trace: driver
	Memory string `col:"memory"`  // by the hook: what torch says of the tensor's memory, pinned or pageable; "" not asked, or nobody can say
	// by the hook: cast, strided (or both, with a comma) where torch first makes another tensor of it, in the host's memory; of one
	// that is cast with non_blocking=True some versions do
	Made    string `col:"made"`
	Skipped uint32 `col:"skipped"` // by the hook: such copies since the row before, of which the budget of time has left no rows
	Device  string `col:"device"`  // by the hook: cuda, other; else ""
}

// CudaCalls is how often a process has called a function of a CUDA library so far (kernel tier).
type CudaCalls struct {
	Head
	Library  string `col:"library"`  // as in CudaLibrary
	Function string `col:"function"` // without the endings _ptsz and _ptds: cuLaunchKernel
	Calls    uint64 `col:"calls"`    // so far
	NS       uint64 `col:"ns"`       // that they took, all together; 0 of functions that are only counted
	Bytes    uint64 `col:"bytes"`    // of copies
	Small    uint64 `col:"small"`    // copies of at most 64 KiB
	SmallNS  uint64 `col:"small_ns"` // that they took
	Failed   uint64 `col:"failed"`   // that gave another result than success
	Final    bool   `col:"final"`    // the process has ended
}

// CallSite is what Python was executing in the main thread of a process when the kernel looked, once for each place (kernel
// tier, CPython 3.8 to 3.14): as a copy to a device returned, as a page was written to that is shared with the parent, or
// as a data file was opened. Or in any thread, when the hook looked as a copy to a device had returned (record --copies).
type CallSite struct {
	Head        // ts_ns: when it was written
	Site uint32 `col:"site"` // its number in this part, from 1; from 2^31 on those of the hook, the same for the same text
	// "file:line function" of each frame, the innermost first, at most 12, divided by newlines; line 0: not known
	Frames string `col:"frames"`
}

// Touch is how often a process was seen to write, at a place, to pages that it shared with its parent (kernel tier, x86-64): of 64
// such faults of a process one is looked at. proc 0: all processes.
type Touch struct {
	Head
	Site uint32 `col:"site"` // CallSite.Site, where that is known; 0 there were too many places to tell them apart
	Seen uint64 `col:"seen"` // so far
}

// Host is the machine of a part.
type Host struct {
	Head
	Hostname string `col:"hostname"`  // as gethostname says
	BootID   string `col:"boot_id"`   // /proc/sys/kernel/random/boot_id
	Kernel   string `col:"kernel"`    // release
	Arch     string `col:"arch"`      // as Go calls it: amd64, arm64
	CPUs     int32  `col:"cpus"`      // usable by the recorder
	MemTotal int64  `col:"mem_total"` // of the machine
	PageSize int64  `col:"page_size"` // of the kernel
	// devices that compute beside the processors: nvidia, kfd, and others by the names of their files, joined by
	// commas; none: there is no such file; "" of an older trace
	Accelerators string `col:"accelerators"`
}

// Clock ties the monotonic clock (Head.TsNS) to the others.
type Clock struct {
	Head
	RealNS        int64 `col:"real_ns"`        // CLOCK_REALTIME
	BootNS        int64 `col:"boot_ns"`        // CLOCK_BOOTTIME
	UncertaintyNS int64 `col:"uncertainty_ns"` // half of the best sandwich
}

// Meta is what there is one of: a key and its value. Keys: schema, version,
// run_id, command (JSON array), cwd, started_ns (since 1970), tier (hook or
// kernel), tier_refused (why not kernel; "" not tried), digest (budget, full or
// off: which samples were digested), spool, redact (JSON array: what --redact was
// given; absent: nothing);
// written when the target has ended: exit_code, target_cpu_ns (of the target from its exec on and
// of all descendants that were waited for), left_running (processes that lived
// on), rows (JSON object: rows of each table),
// sealed ("yes"; without it the recording was cut).
type Meta struct {
	Head
	Key   string `col:"key"`   // one of those above
	Value string `col:"value"` // as text
}

// Lost is what could not be recorded: the count since the last such row.
type Lost struct {
	Head
	// hook (its ring was full, or it has given up), recorder (it died, and what was left was added later),
	// writer (the trace could not be written), hook-error (our code failed and stood aside),
	// kernel (a map or ring of the eBPF programs was full)
	Source string `col:"source"`
	Table  string `col:"table"`  // "" not known
	Count  uint64 `col:"count"`  // rows, or records of the hook; 0 unknown
	Reason string `col:"reason"` // as text
}

// Overhead is what recording has cost so far: of the hook in its process, or
// (proc 0) of the recorder itself: all of it, or of one probe.
type Overhead struct {
	Head
	HookNS  int64  `col:"hook_ns"`  // time inside of the hook; 0 for the recorder
	CPUNS   int64  `col:"cpu_ns"`   // the recorder's own CPU time; 0 for the hook
	Calls   uint64 `col:"calls"`    // of wrapped methods; of the recorder: how often it woke up
	Records uint64 `col:"records"`  // written
	Rss     int64  `col:"rss"`      // the recorder's
	Probe   string `col:"probe"`    // proc 0: whose CPU time cpu_ns is; "" all of the recorder's
	BpfNS   int64  `col:"bpf_ns"`   // of a probe: time that its eBPF programs have taken from the run's processes; 0 not known
	BpfRuns uint64 `col:"bpf_runs"` // of a probe: runs of its eBPF programs for the run's processes
	StartNS int64  `col:"start_ns"` // of hook_ns or cpu_ns: what was spent once, to begin, however long the run
}
