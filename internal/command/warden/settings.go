package warden

import (
	"strconv"
	"strings"
	"syscall"
)

// Settings are the attributes of a command that differ from its warden's. They are applied in the command's own process, before that
// process becomes the command, so that the warden keeps its priority and its memory.
type Settings struct {
	Umask, Nice *int // nil: the same as the warden's
	Limits      []Limit
	User        *User // nil: the warden's user
}

// Limit is the soft and the hard limit of a resource.
type Limit struct {
	Resource int // a resource number of setrlimit(2)
	Max      uint64
}

// User is the user with whose rights a command runs.
type User struct {
	UID, GID int // -1: the same as the warden's
	// Groups are the supplementary groups. If UID is -1, the command has the warden's groups.
	Groups []int
}

// Empty reports whether no setting differs from the warden's settings.
func (s Settings) Empty() bool {
	return s.Umask == nil && s.Nice == nil && s.User == nil && len(s.Limits) == 0
}

// Step is a setting that the kernel may refuse.
type Step int

// These are the steps. StepBegin is the start of the program itself, and the last step.
const (
	StepBegin Step = iota
	StepNice
	StepLimits
	StepUser
)

// numbers returns the settings in the form that readSettings decodes. It returns no numbers if there are no settings.
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

// readSettings decodes settings from the numbers at the beginning of text. The argument many is the number of these numbers, and rest is
// the text after them.
func readSettings(text string, many int64) (s Settings, rest string, err error) {
	const most = 1 << 17 // Linux has at most 65,536 groups per process
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

// settled is the text that a launcher writes when all settings are applied. If the program cannot be started, a step and an errno
// follow this text. If a setting fails, the launcher writes the step and the errno instead of this text.
const settled = "."

// ReadOutcome parses the whole output of a launcher. The error is nil if the settings were applied and the launcher has become the command.
// In a trial the launcher never becomes a command, and the error is nil if the settings were applied.
func ReadOutcome(said string) (Step, error) {
	rest, made := strings.CutPrefix(said, settled)
	if made && rest == "" {
		return 0, nil
	}
	step, errno, _ := strings.Cut(rest, " ")
	number, err := strconv.Atoi(step)
	code, err2 := strconv.Atoi(errno)
	if err != nil || err2 != nil || code == 0 {
		return 0, syscall.ECHILD // the launcher was killed
	}
	return Step(number), syscall.Errno(code)
}
