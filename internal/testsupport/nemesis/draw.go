// Package nemesis draws schedules of faults from a seed, and carries them out. What a
// fault does is the test's own.
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

// Trait is how a kind of fault is drawn. A kind that lasts no time is over at once.
type Trait struct {
	Kind           string
	Place          string // what only one fault at a time may be at
	Weight         int
	Least, Longest time.Duration // how long it lasts
}

// Fault is one entry of a schedule.
type Fault struct {
	Trait
	At, Lasts time.Duration // since the start
	Draw      uint64        // what else there is to choose
}

func (f Fault) String() string {
	if f.Lasts > 0 {
		return fmt.Sprintf("%s for %v", f.Kind, f.Lasts)
	}
	return f.Kind
}

// Pace is how dense a schedule is.
type Pace struct {
	Least, Most time.Duration // from the beginning of one fault to that of the next
	// Quiet is how long nothing is broken now and then, so that recovery can be seen: in
	// three of four cases in which the faults so far have taken less than Each on average.
	Quiet, Each time.Duration
}

// Draw makes the schedule of a seed: n faults, some of which overlap.
func Draw(seed uint64, n int, traits []Trait, p Pace) []Fault {
	rng := rand.New(rand.NewPCG(seed, 0))
	between := func(least, most time.Duration) time.Duration {
		return (least + time.Duration(rng.Int64N(int64(most-least)+1))).Round(time.Millisecond)
	}
	var faults []Fault
	busy := map[string]time.Duration{} // places, and until when
	healed := time.Duration(0)         // when all faults so far are over
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

// pick draws a kind of fault whose place is not broken already.
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

// Asked reads $CHAOS_FAULTS, how many faults there shall be, and $CHAOS_SEED, of which
// schedule. Without the first it is an ordinary test run: not strict, since other tests
// share the machine.
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

// Seed reads $CHAOS_SEED; without it another schedule is drawn each time.
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
