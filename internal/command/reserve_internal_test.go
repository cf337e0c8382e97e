//go:build linux

package command

import (
	"testing"
	"time"
)

// A host that cannot start any more processes does not get requests for processes again and again, however long this lasts.
func TestWardensThatDoNotStayAreMadeMoreAndMoreRarely(t *testing.T) {
	r := NewReserve([]string{"/bin/false"})
	r.Keep(1)
	for _, want := range []time.Duration{calm, 2 * calm, 4 * calm, 8 * calm, 16 * calm, lookAfter, lookAfter, lookAfter} {
		r.fill() // a warden that ends at once
		for r.spare[0].Alive() {
			time.Sleep(time.Millisecond)
		}
		if wait := r.fill(); wait != want || len(r.spare) > 0 {
			t.Errorf("the next one after %v, %d are kept; want it after %v", wait, len(r.spare), want)
		}
	}
}
