package warden

import (
	"strconv"
	"strings"
	"syscall"
)

// Settings are the attributes of a command that differ from its warden's. They are made in the command's own
// process, before it becomes the command: the warden keeps its priority and its memory.
type Settings struct {
	Umask, Nice *int // nil: as the warden
	Limits      []Limit
	User        *User // nil: the warden's
}

// Limit is a resource limit, soft and hard.
type Limit struct {
	Resource int // a number of setrlimit(2)
	Max      uint64
}

// User is whose rights a command has.
type User struct {
	UID, GID int // -1: as the warden
	// Groups are the supplementary groups; those of the warden where UID is -1.
	Groups []int
}

// Empty reports that everything is as the warden has it.
func (s Settings) Empty() bool {
	return s.Umask == nil && s.Nice == nil && s.User == nil && len(s.Limits) == 0
}

// Step is a setting that the kernel may refuse.
type Step int

// The steps, in their order. Begin is the program itself.
const (
	StepBegin Step = iota
	StepNice
	StepLimits
	StepUser
)

// numbers are the settings as the other side reads them; none if there are none.
func (s Settings) numbers() []int64 {
	if s.Empty() {
		return nil
	}
	var all []int64
	for _, v := range []*int{s.Umask, s.Nice} {
		if v == nil {
			all = append(all, 0, 0)
		} else {
			all = append(all, 1, int64(*v))
		}
	}
	if u := s.User; u == nil {
		all = append(all, 0)
	} else {
		all = append(all, 1, int64(u.UID), int64(u.GID), int64(len(u.Groups)))
		for _, g := range u.Groups {
			all = append(all, int64(g))
		}
	}
	for _, l := range s.Limits {
		all = append(all, int64(l.Resource), int64(l.Max))
	}
	return all
}

// readSettings decodes settings of the given number of numbers.
func readSettings(text string, many int64) (s Settings, rest string, err error) {
	const most = 1 << 17 // Linux has 65,536 groups of a process at most
	if many < 0 || many > most {
		return s, "", errWire
	}
	n, rest, err := numbers(text, int(many))
	if err != nil || many == 0 {
		return s, rest, err
	}
	take := func(count int64) []int64 {
		if err != nil || count < 0 || count > int64(len(n)) {
			err = errWire
			return make([]int64, max(0, min(count, most)))
		}
		first := n[:count]
		n = n[count:]
		return first
	}
	for _, to := range []**int{&s.Umask, &s.Nice} {
		if v := take(2); v[0] != 0 {
			value := int(v[1])
			*to = &value
		}
	}
	if take(1)[0] != 0 {
		v := take(3)
		s.User = &User{UID: int(v[0]), GID: int(v[1])}
		for _, g := range take(v[2]) {
			s.User.Groups = append(s.User.Groups, int(g))
		}
	}
	for len(n) > 0 && err == nil {
		v := take(2)
		s.Limits = append(s.Limits, Limit{Resource: int(v[0]), Max: uint64(v[1])})
	}
	return s, rest, err
}

// settled is the text that a launcher writes when all settings are made. If the program cannot be
// begun, a step and an errno follow it; if a setting fails, they come instead of it.
const settled = "."

// ReadOutcome parses the whole output of a launcher. The error is nil if the settings were made
// and the launcher, if it had to, has become the command.
func ReadOutcome(said string) (Step, error) {
	rest, made := strings.CutPrefix(said, settled)
	if made && rest == "" {
		return 0, nil
	}
	step, errno, _ := strings.Cut(rest, " ")
	number, err := strconv.Atoi(step)
	code, err2 := strconv.Atoi(errno)
	if err != nil || err2 != nil || code == 0 {
		return 0, syscall.ECHILD // it was killed
	}
	return Step(number), syscall.Errno(code)
}
