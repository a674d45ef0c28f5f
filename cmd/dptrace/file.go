package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// file writes a file, which has its name only when it is whole.
func (w *work) file(name string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // /dev/null, a pipe: nothing to be renamed over
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(w.writing(name, f)), f.Close())
	}
	f, err := w.create(name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			_ = w.settle(func() error { os.Remove(f.Name()); return nil })
		}
	}()
	if err = write(w.writing(name, f)); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return w.settle(func() error { return os.Rename(f.Name(), name) })
}

// create the file that is written, beside the one that it becomes.
func (w *work) create(name string) (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err == nil {
		w.part = f.Name()
	}
	return f, err
}

// settle what becomes of the file that was written, unless a signal has.
func (w *work) settle(do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := do()
	if err == nil {
		w.part = ""
	}
	return err
}
