package files

import "testing"

func TestIsData(t *testing.T) {
	for path, want := range map[string]bool{
		"/data/train/0001.jpg":                                  true,
		"/home/me/shards/train-000.tar":                         true,
		"/library/shelves.h5":                                   true,
		"/home/me/.cache/huggingface/x.arrow":                   true,
		"/dev/shm/imagenet/0.rec":                               true,
		"/data/libs/part.bin":                                   true,
		"/usr/local/data/points.npy":                            true,
		"/dev/shm/torch_123_456_0":                              false,
		"/dev/shm/sem.mp-abc":                                   false,
		"/dev/urandom":                                          false,
		"/proc/self/maps":                                       false,
		"/etc/ld.so.cache":                                      false,
		"/usr/lib/python3/dist-packages/a.json":                 false,
		"/home/me/venv/lib/python3.11/site-packages/x":          false,
		"/opt/packages/torch-2.15.0.dist-info/entry_points.txt": false,
		"/opt/env/bin/python3.11":                               false,
		"/home/me/venv/pyvenv.cfg":                              false,
		"/home/me/train.py":                                     false,
		"/home/me/__pycache__/train.cpython-311.pyc":            false,
		"/opt/cuda/libcudart.so.12":                             false,
		"/lib/x86_64-linux-gnu/libc.so.6":                       false,
		"/lib64/ld-linux-x86-64.so.2":                           false,
	} {
		if got := isData(path); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	}
}
