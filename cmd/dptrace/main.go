// Command dptrace finds silent bugs in PyTorch data pipelines, with proof.
package main

import "os"

func main() { os.Exit(run(os.Args[1:])) }
