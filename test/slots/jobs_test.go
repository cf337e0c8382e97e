package slots

import (
	"fmt"
	"strings"
	"time"
)

// spec is a job as the judge knows it.
type spec struct {
	name     string
	lock     string        // "" is the nodes' own
	every    time.Duration // its slots are the multiples of this since 1970
	schedule string        // "" is "@every" that
	catchUp  string
	overlap  string
	rerun    bool
	retries  int
	jitter   time.Duration
	deadline time.Duration // starting_deadline
	work     string        // arguments of the command
	lasts    time.Duration // as these say
}

// slotsBetween are the slots of a job after from and not after to.
func (s spec) slotsBetween(from, to time.Time) []time.Time {
	var slots []time.Time
	every := s.every.Milliseconds()
	for at := (from.UnixMilli()/every + 1) * every; at <= to.UnixMilli(); at += every {
		slots = append(slots, time.UnixMilli(at))
	}
	return slots
}

// latest is the last slot that is not after at.
func (s spec) latest(at time.Time) time.Time {
	every := s.every.Milliseconds()
	return time.UnixMilli(at.UnixMilli() / every * every)
}

// mostAttempts is how often a slot may be started; 0: as often as it is lost.
func (s spec) mostAttempts() int {
	if s.rerun {
		return 0
	}
	return 1 + s.retries
}

// mix is a job of every policy. Runs are short beside the lease, so that most end.
func mix() []spec {
	const ms = time.Millisecond
	return []spec{
		{name: "latest", every: time.Second, catchUp: "latest", overlap: "forbid", work: "100ms", lasts: 100 * ms},
		{name: "rerun", every: 3 * time.Second, catchUp: "latest", overlap: "forbid", rerun: true, work: "600ms", lasts: 600 * ms},
		{name: "none", every: time.Second, catchUp: "none", overlap: "forbid", work: "50ms", lasts: 50 * ms},
		{name: "all", every: 2 * time.Second, catchUp: "all", overlap: "queue_one", work: "20ms", lasts: 20 * ms},
		{name: "all-rerun", every: 5 * time.Second, catchUp: "all", overlap: "forbid", rerun: true, work: "300ms", lasts: 300 * ms},
		{name: "slow", every: time.Second, catchUp: "latest", overlap: "forbid", work: "1400ms", lasts: 1400 * ms},
		{name: "queue", every: 2 * time.Second, catchUp: "latest", overlap: "queue_one", rerun: true, work: "2500ms", lasts: 2500 * ms},
		{name: "replace", every: 2 * time.Second, catchUp: "none", overlap: "replace", work: "2600ms", lasts: 2600 * ms},
		{name: "allow", every: 2 * time.Second, catchUp: "latest", overlap: "allow", work: "2700ms", lasts: 2700 * ms},
		{name: "retry", every: 4 * time.Second, catchUp: "latest", overlap: "forbid", retries: 2, work: "50ms fails=2", lasts: 50 * ms},
		{name: "retry-rerun", every: 5 * time.Second, catchUp: "latest", overlap: "forbid", retries: 3, rerun: true, work: "200ms fails=1", lasts: 200 * ms},
		{name: "jitter", every: 2 * time.Second, catchUp: "latest", overlap: "forbid", jitter: 900 * ms, work: "30ms", lasts: 30 * ms},
		{name: "deadline", every: 2 * time.Second, catchUp: "latest", overlap: "forbid", deadline: 3 * time.Second, work: "30ms", lasts: 30 * ms},
		{name: "stubborn", every: 4 * time.Second, catchUp: "latest", overlap: "forbid", work: "1500ms stubborn", lasts: 1500 * ms},
		{name: "minute", every: time.Minute, schedule: "* * * * *", catchUp: "latest", overlap: "forbid", rerun: true, work: "500ms", lasts: 500 * ms},
		{name: "east", lock: "east", every: time.Second, catchUp: "latest", overlap: "forbid", work: "50ms", lasts: 50 * ms},
		{name: "east-rerun", lock: "east", every: 4 * time.Second, catchUp: "latest", overlap: "replace", rerun: true, work: "700ms", lasts: 700 * ms},
		{name: "west", lock: "west", every: 2 * time.Second, catchUp: "all", overlap: "forbid", work: "50ms", lasts: 50 * ms},
	}
}

// yaml is the job's part of a configuration: a generation tells one configuration from the
// one that it is reloaded from.
func (s spec) yaml(program, file string, generation int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	schedule := s.schedule
	if schedule == "" {
		schedule = "@every " + s.every.String()
	}
	b.WriteString("- name: " + s.name + "\n")
	line("schedule: %q", schedule)
	line("command: [%q, %q, %s]", program, file, strings.Join(strings.Fields(s.work), ", "))
	line("env: {GENERATION: \"%d\"}", generation)
	line("catch_up: %s", s.catchUp)
	line("overlap: %s", s.overlap)
	line("grace: 300ms")
	if s.lock != "" {
		line("lock: %s", s.lock)
	}
	if s.rerun {
		line("on_lost: rerun")
	}
	if s.retries > 0 {
		line("retry: {limit: %d, delay: 300ms, max_delay: 1s}", s.retries)
	}
	if s.jitter > 0 {
		line("jitter: %v", s.jitter)
	}
	if s.deadline > 0 {
		line("starting_deadline: %v", s.deadline)
	}
	return b.String()
}

// jobsYAML is what stands under jobs:.
func jobsYAML(jobs []spec, program, file string, generation int) string {
	var b strings.Builder
	for _, s := range jobs {
		b.WriteString(s.yaml(program, file, generation))
	}
	return b.String()
}
