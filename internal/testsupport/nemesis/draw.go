// Package nemesis draws schedules of faults from a seed, and executes them. The test defines the effect of a fault.
package nemesis

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Trait describes how a kind of fault is drawn. A kind without a duration ends immediately.
type Trait struct {
	Kind           string
	Place          string // a place has at most one fault at a time
	Weight         int
	Least, Longest time.Duration // limits of its duration
}

// Fault is one fault of a schedule.
type Fault struct {
	Trait
	At, Lasts time.Duration // At is the time since the start
	Draw      uint64        // a random number for further choices of the test
}

func (f Fault) String() string {
	if f.Lasts > 0 {
		return fmt.Sprintf("%s for %v", f.Kind, f.Lasts)
	}
	return f.Kind
}

// Pace says how close together the faults of a schedule are.
type Pace struct {
	Least, Most time.Duration // limits of the time between the starts of two faults
	// Quiet is the length of a pause without faults, in which the test sees the recovery. Draw adds a pause in three of four cases, if the
	// schedule with this pause then takes at most Each per fault on average.
	Quiet, Each time.Duration
}

// Draw makes a schedule of n faults from a seed. Some faults overlap.
func Draw(seed uint64, n int, traits []Trait, p Pace) []Fault {
	rng := rand.New(rand.NewPCG(seed, 0))
	between := func(least, most time.Duration) time.Duration {
		return (least + time.Duration(rng.Int64N(int64(most-least)+1))).Round(time.Millisecond)
	}
	var faults []Fault
	busy := map[string]time.Duration{} // when the fault of each place ends
	healed := time.Duration(0)         // when the last fault so far ends
	for at := p.Least; len(faults) < n; {
		if t, free := pick(rng, traits, busy, at); free {
			f := Fault{Trait: t, At: at, Draw: rng.Uint64()}
			if t.Longest > 0 {
				f.Lasts = between(t.Least, t.Longest)
			}
			faults = append(faults, f)
			busy[t.Place] = at + f.Lasts + 100*time.Millisecond
			healed = max(healed, at+f.Lasts)
		}
		at += between(p.Least, p.Most)
		if rest := healed + p.Quiet; rest <= time.Duration(len(faults))*p.Each && rng.IntN(4) < 3 {
			at = max(at, rest)
		}
	}
	return faults
}

// pick draws a kind of fault for a place that has no fault at the time at.
func pick(rng *rand.Rand, traits []Trait, busy map[string]time.Duration, at time.Duration) (Trait, bool) {
	free := slices.DeleteFunc(slices.Clone(traits), func(t Trait) bool { return busy[t.Place] > at })
	sum := 0
	for _, t := range free {
		sum += t.Weight
	}
	if sum == 0 {
		return Trait{}, false
	}
	n := rng.IntN(sum)
	for _, t := range free {
		if n -= t.Weight; n < 0 {
			return t, true
		}
	}
	panic("unreachable: the weights add up to the sum")
}

// Asked reads the number of faults from $CHAOS_FAULTS, and the seed of the schedule from $CHAOS_SEED. Without $CHAOS_FAULTS it returns the
// ordinary number of faults. The result strict is then false, because other tests use the machine at the same time.
func Asked(t testing.TB, ordinary int) (faults int, seed uint64, strict bool) {
	t.Helper()
	faults = ordinary
	if text := os.Getenv("CHAOS_FAULTS"); text != "" {
		var err error
		strict = true
		if faults, err = strconv.Atoi(text); err != nil || faults < 1 {
			t.Fatalf("$CHAOS_FAULTS is %q: want a number, such as 200", text)
		}
	}
	return faults, Seed(t), strict
}

// Seed reads $CHAOS_SEED. Without $CHAOS_SEED every call returns a new random seed.
func Seed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("CHAOS_SEED")
	if text == "" {
		return rand.Uint64N(1e9)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("$CHAOS_SEED is %q: want a number that an earlier run has printed", text)
	}
	return seed
}
