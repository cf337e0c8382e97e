package testsupport

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Paced is d on a machine at ease, and a multiple of it on a busy one, as the machine is at
// that moment: for leases and limits that a process has to keep although others want the
// processors, too. A machine that runs this suite alone is at ease.
func Paced(d time.Duration) time.Duration { return time.Duration(float64(d) * crowding()) }

// crowding is how many times more there is to run than a run of the suite brings along: 1 to 5.
func crowding() float64 {
	const own, most = 2, 5 // processes for each processor
	return min(max(runnable()/float64(own*runtime.NumCPU()), 1), most)
}

// runnable is how many threads run or wait for a processor: the average of the last minute, or
// of this moment if that is more. It is 0 where the kernel does not say.
func runnable() float64 {
	const samples = 10
	var now, minute float64
	for range samples {
		text, err := os.ReadFile("/proc/loadavg")
		if err != nil {
			return 0
		}
		var running int
		if _, err := fmt.Fscanf(bytes.NewReader(text), "%f %f %f %d/", &minute, new(float64), new(float64), &running); err != nil {
			return 0
		}
		now += float64(running) / samples
		time.Sleep(2 * time.Millisecond)
	}
	return max(now, minute)
}
