package words

import (
	"fmt"
	"strings"
)

// Last part of a dotted name: a class without its module, an attribute without
// what it hangs on.
func Last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// OneIn says what was left out where one half of all numbers was, so many times;
// "" if nothing was.
func OneIn(halved uint, what string) string {
	if halved == 0 {
		return ""
	}
	return fmt.Sprintf("one in %d %s was looked at (hash below 2^%d)", uint64(1)<<min(halved, 63), what, 64-min(halved, 64))
}

// Why contents that differ say nothing about samples.
const (
	BatchesDiffer = "the dataset hands out batches (batch_size=None), and none of them came again: the samples in them may be put " +
		"together anew each time"
	OnePassOfContents = "in one pass nothing shows whether the content of a sample would come again, or is drawn anew each time: " +
		"let the recording go on to a second one"
	ContentsNeverAgain = "no content came again in another pass: it may be drawn anew each time"
	ContentsDiffer     = "the fetches draw random numbers: the contents of a sample may differ each time that it is read"
)
