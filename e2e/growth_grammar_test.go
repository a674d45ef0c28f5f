package e2e

// What random programs are drawn from (growth_draw_test.go): containers, values
// that are kept in them, what lies around them, where they hang.

// keeper is a container and how it is filled. $C: the container; $V: a new value;
// $I: the index of a sample, or the number of a batch.
type keeper struct {
	name, make, keep string
	value            string // a kind of values that it needs; "": any
	inside           string // what grows is in it: [*]
	loop             bool   // training loops have such, too
}

// growingKeepers: nothing ends them.
var growingKeepers = []keeper{
	{name: "dict", make: "{}", keep: "$C[$I, random.random()] = $V", loop: true},
	{name: "dict by time", make: "{}", keep: `$C["%d-%r" % ($I, time.time())] = $V`},
	{name: "list", make: "[]", keep: "$C.append($V)", loop: true},
	{name: "list +=", make: "[]", keep: "more = $C\nmore += [$V]"},
	{name: "set", make: "set()", keep: "$C.add($V)", value: "bytes"},
	{name: "deque", make: "collections.deque()", keep: "$C.append($V)", loop: true},
	{name: "OrderedDict", make: "collections.OrderedDict()", keep: "$C[$I, random.random()] = $V"},
	{name: "defaultdict of lists", make: "collections.defaultdict(list)", keep: "$C[LABELS[$I]].append($V)", inside: "[*]"},
	{name: "defaultdict", make: "collections.defaultdict(list)", keep: "$C[$I, random.random()].append($V)"},
	{name: "lru_cache(maxsize=None)", make: "functools.lru_cache(maxsize=None)(produce)", keep: "$C($I, random.random())"},
	{name: "functools.cache", make: "functools.cache(produce)", keep: "$C($I, random.random())"},
	{name: "list of tensors", make: "[]", keep: "$C.append($V)", value: "tensor"},
	{name: "list of arrays", make: "[]", keep: "$C.append($V)", value: "array"},
	{name: "dict of tensors", make: "{}", keep: "$C[$I, random.random()] = $V", value: "tensor"},
	{name: "bytearray", make: "bytearray()", keep: "$C.extend($V)", value: "bytes"},
	{name: "BytesIO", make: "io.BytesIO()", keep: "$C.write($V)", value: "bytes"},
	{name: "dict of its own class", make: "Memo()", keep: "$C[$I, random.random()] = $V", loop: true},
	{name: "list of its own class", make: "Rows()", keep: "$C.append($V)", loop: true},
}

// boundedKeepers are their twins.
var boundedKeepers = []keeper{
	{name: "lru_cache(maxsize=30)", make: "functools.lru_cache(maxsize=30)(produce)", keep: "$C($I, random.random())"},
	{name: "lru_cache(maxsize=None) by index", make: "functools.lru_cache(maxsize=None)(produce)", keep: "$C($I)"},
	{name: "functools.cache by index", make: "functools.cache(produce)", keep: "$C($I)"},
	{name: "deque(maxlen=30)", make: "collections.deque(maxlen=30)", keep: "$C.append($V)", loop: true},
	{name: "dict by index", make: "{}", keep: "if $I not in $C:\n    $C[$I] = $V", loop: true},
	{name: "dict by index, made anew", make: "{}", keep: "$C[$I] = $V"},
	{name: "dict by label", make: "{}", keep: "$C.setdefault(LABELS[$I], $V)"},
	{name: "OrderedDict that drops the oldest", make: "collections.OrderedDict()",
		keep: "$C[$I, random.random()] = $V\nif len($C) > 30:\n    $C.popitem(last=False)"},
	{name: "dict that drops the oldest", make: "{}", keep: "$C[$I, random.random()] = $V\nwhile len($C) > 30:\n    $C.pop(next(iter($C)))"},
	{name: "list cleared at 40", make: "[]", keep: "$C.append($V)\nif len($C) == 40:\n    $C.clear()", loop: true},
	{name: "list of the first 40", make: "[]", keep: "if len($C) < 40:\n    $C.append($V)", loop: true},
	{name: "list of the last 30", make: "[]", keep: "$C.append($V)\ndel $C[:-30]", loop: true},
	{name: "ring of 30", make: "[None] * 30", keep: "$C[$I % 30] = $V", loop: true},
	{name: "set by index", make: "set()", keep: "$C.add(($I, b'%09d' % $I * (SIZE // 9)))", value: "bytes"},
	{name: "defaultdict by index", make: "collections.defaultdict(list)", keep: "if not $C[$I]:\n    $C[$I].append($V)"},
	{name: "defaultdict of deques", make: "collections.defaultdict(lambda: collections.deque(maxlen=4))", keep: "$C[LABELS[$I]].append($V)"},
}

// kept is a value of SIZE bytes.
type kept struct{ name, make string }

// sampleValues are made for a sample.
var sampleValues = []kept{
	{"array", "np.ones(SIZE // 4, np.float32)"},
	{"tensor", "torch.ones(SIZE // 4)"},
	{"bytes", "np.full(SIZE // 4, random.random(), np.float32).tobytes()"},
	{"floats", "[random.random() for _ in range(SIZE // 32)]"},
	{"record", "{'index': 1, 'image': np.ones(SIZE // 4, np.float32), 'name': 'photo'}"},
}

// batchValues are kept in a training loop, of a batch x and what the model makes of it.
var batchValues = []kept{
	{"losses with their graph", "out.mean()"},
	{"outputs with their graph", "out"},
	{"detached outputs", "out.detach()"},
	{"batches", "x.clone()"},
	{"batches as they come", "raw"},
	{"batches as arrays", "x.numpy().copy()"},
}

// step is one level on the way to a container: what is made around $INNER, and how
// code goes through it.
type step struct{ make, through string }

var steps = []step{
	{"Plain($ATTRIBUTE=$INNER, number=3)", ".$ATTRIBUTE"},
	{"types.SimpleNamespace($ATTRIBUTE=$INNER)", ".$ATTRIBUTE"},
	{"Slim($INNER)", ".inner"},
	{"Record($INNER)", ".content"},
	{"{'first': 1, '$ATTRIBUTE': $INNER}", "['$ATTRIBUTE']"},
	{"[None, $INNER]", "[1]"},
	{"($INNER, 'text')", "[0]"},
}

var attributeNames = []string{"cache", "seen", "memo", "history", "images", "_store", "buffer", "rows", "kept", "loaded", "results", "features", "bank"}

// spot is where $NAME hangs, which is the container or the first step to it: what
// of the skeleton makes it ($MAKE) and fills it ($KEEP).
type spot struct {
	name       string
	marks      map[string]string
	expression string // of $NAME where it is filled
	path       string // of $NAME
	function   string // whose variable the path begins with
	main       bool   // in the main process, however many workers there are
	loop       bool   // and filled with batches
}

var spots = []spot{
	{name: "dataset", expression: "self.$NAME", path: "dataset.$NAME", marks: map[string]string{
		"INIT": "self.$NAME = $MAKE",
		"GET":  "$KEEP",
	}},
	{name: "dataset, in a method", expression: "self.$NAME", path: "dataset.$NAME", marks: map[string]string{
		"INIT":    "self.$NAME = $MAKE",
		"GET":     "self.note(i)",
		"METHODS": "def note(self, i):\n    $KEEP\n",
	}},
	{name: "class attribute", expression: "self.$NAME", path: "dataset.$NAME", marks: map[string]string{
		"CLASS": "$NAME = $MAKE\n",
		"GET":   "$KEEP",
	}},
	{name: "module global", expression: "$NAME", path: "__main__.$NAME", marks: map[string]string{
		"GLOBAL": "$NAME = $MAKE",
		"GET":    "$KEEP",
	}},
	{name: "module global, in a function", expression: "$NAME", path: "__main__.$NAME", marks: map[string]string{
		"GLOBAL": "$NAME = $MAKE\n\n\ndef note(i):\n    $KEEP",
		"GET":    "note(i)",
	}},
	{name: "transform", expression: "self.$NAME", path: "dataset.transform.$NAME", marks: map[string]string{
		"GLOBAL": keepingClass + "    def __call__(self, i):\n        $KEEP",
		"INIT":   "self.transform = Keeping()",
		"GET":    "self.transform(i)",
	}},
	{name: "one of the transforms", expression: "self.$NAME", path: "dataset.transforms[1].$NAME", marks: map[string]string{
		"GLOBAL": keepingClass + "    def __call__(self, i):\n        $KEEP",
		"INIT":   "self.transforms = [abs, Keeping()]",
		"GET":    "for transform in self.transforms:\n    transform(i)",
	}},
	{name: "closure", expression: "$NAME", path: "dataset.transform<closure $NAME>", marks: map[string]string{
		"GLOBAL": "def make():\n    $NAME = $MAKE\n\n    def transform(i):\n        $KEEP\n\n    return transform",
		"INIT":   "self.transform = make()",
		"GET":    "self.transform(i)",
	}},
	{name: "default argument", expression: "$NAME", path: "dataset.note<default $NAME>", marks: map[string]string{
		"METHODS": "def note(self, i, $NAME=$MAKE):\n    $KEEP\n",
		"GET":     "self.note(i)",
	}},
	{name: "collate object", expression: "self.$NAME", path: "collate_fn.$NAME", marks: map[string]string{
		"GLOBAL":  keepingClass + "    def __call__(self, batch):\n        for i, _ in batch:\n            $KEEP\n        return default_collate(batch)",
		"COLLATE": "Keeping()",
	}},
	{name: "collate method", expression: "self.$NAME", path: "collate_fn.__self__.$NAME", marks: map[string]string{
		"GLOBAL":  keepingClass + "    def collate(self, batch):\n        for i, _ in batch:\n            $KEEP\n        return default_collate(batch)",
		"COLLATE": "Keeping().collate",
	}},
	{name: "collate closure", expression: "$NAME", path: "collate_fn<closure $NAME>", marks: map[string]string{
		"GLOBAL": "def make():\n    $NAME = $MAKE\n\n    def collate(batch):\n        for i, _ in batch:\n            $KEEP\n" +
			"        return default_collate(batch)\n\n    return collate",
		"COLLATE": "make()",
	}},
	{name: "sampler", main: true, expression: "self.$NAME", path: "sampler.$NAME", marks: map[string]string{
		"GLOBAL": "class Order(Sampler):\n    def __init__(self):\n        self.$NAME = $MAKE\n\n    def __len__(self):\n        return SAMPLES\n\n" +
			"    def __iter__(self):\n        for i in torch.randperm(SAMPLES).tolist():\n            $KEEP\n            yield i",
		"ORDER": "sampler=Order()",
	}},
	{name: "training loop", main: true, loop: true, expression: "$NAME", path: "$NAME", function: "main", marks: map[string]string{
		"BEFORE": "$NAME = $MAKE",
		"LOOP":   "$KEEP",
	}},
	{name: "training loop, module global", main: true, loop: true, expression: "$NAME", path: "__main__.$NAME", marks: map[string]string{
		"GLOBAL": "$NAME = $MAKE",
		"LOOP":   "$KEEP",
	}},
	{name: "trainer", main: true, loop: true, expression: "self.$NAME", path: "trainer.$NAME", function: "main", marks: map[string]string{
		"GLOBAL": keepingClass + "    def step(self, i, raw, x, out):\n        $KEEP",
		"BEFORE": "trainer = Keeping()",
		"LOOP":   "trainer.step(i, raw, x, out)",
	}},
}

const keepingClass = "class Keeping:\n    def __init__(self):\n        self.$NAME = $MAKE\n\n"

// wrap is what lies around the dataset.
type wrap struct{ name, make, path string }

var wraps = []wrap{
	{"", "Data()", ""},
	{"Subset", "Subset(Data(), range(SAMPLES))", ".dataset"},
	{"ConcatDataset", "ConcatDataset([Data()])", ".datasets[0]"},
	{"own wrapper", "Wrapper(Data())", ".inner"},
	{"Subset of ConcatDataset", "Subset(ConcatDataset([Data()]), range(SAMPLES))", ".dataset.datasets[0]"},
}

// ballast is what a dataset has besides.
var ballast = []string{
	"self.root = '/photos'",
	"self.means = [0.5] * 100",
	`self.paths = ["/photos/%06d.jpg" % k for k in range(20000)]`,
	`self.samples = [("/photos/%06d.jpg" % k, k % 10) for k in range(20000)]`,
	"self.boxes = {k: [k, k + 1, k + 2.5] for k in range(5000)}",
	`self.table = {"row%d" % k: {"sizes": [k, 2 * k], "meta": {"hash": hex(k)}} for k in range(60)}`,
	"self.index = np.arange(100000)",
	"self.model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(20)])",
}

// skeleton is what all programs are made of. A line that is a mark alone may
// become several, or none.
const skeleton = `import collections
import functools
import io
import random
import time
import types
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Sampler, Subset
from torch.utils.data.dataloader import default_collate

SAMPLES, BATCH, PASSES, WORKERS, SIZE = $SAMPLES, $BATCH, $PASSES, $WORKERS, $SIZE
LABELS = ["label%d" % (i % 12) for i in range(SAMPLES)]


class Plain:
    def __init__(self, **names):
        self.__dict__.update(names)


class Memo(dict):
    pass


class Rows(list):
    name = "rows"


class Slim:
    __slots__ = ("inner", "other")

    def __init__(self, inner):
        self.inner = inner


@dataclass
class Record:
    content: object
    name: str = "record"


class Wrapper(Dataset):
    def __init__(self, inner):
        self.inner = inner

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, i):
        return self.inner[i]


def produce(*key):
    return $SAMPLE


$GLOBAL


class Data(Dataset):
    $CLASS
    def __init__(self):
        $BALLAST
        $INIT

    def __len__(self):
        return SAMPLES

    $METHODS
    def __getitem__(self, i):
        time.sleep($SLEEP)
        $GET
        return i, torch.full(($WIDTH,), float(i))


def main():
    torch.set_num_threads(1)
    model = torch.nn.Linear($WIDTH, $OUTPUTS)
    loader = DataLoader($DATASET, BATCH, $ORDER, num_workers=WORKERS, persistent_workers=$PERSISTENT, collate_fn=$COLLATE,
                        multiprocessing_context=$CONTEXT)
    $BEFORE
    step = 0
    for epoch in range(PASSES):
        for _, raw in loader:
            x = raw + 0.5
            i, out = step % (SAMPLES // BATCH), model(x)
            step += 1
            $LOOP


if __name__ == "__main__":
    main()
`
