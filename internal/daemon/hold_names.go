package daemon

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/redisconn"
)

// The variables that a command under locks finds.
const (
	envLocks = "BATON_LOCKS" // all that it and the commands around it hold
	envSlot  = "BATON_SLOT"
)

// maxSlots bounds a semaphore: every slot is asked for, one after the other.
const maxSlots = 100

// wantedLock is a name to lock.
type wantedLock struct {
	name string
	keys []string // of the slots; without slots the name alone
	// outer is set if the command around this one holds it already.
	outer *outerLock
}

// outerLock is a lock that a `baton lock` around this one holds.
type outerLock struct {
	key, owner string
	epoch      int64
}

// planLocks sorts the names, and finds those that are held already.
func planLocks(o HoldOptions) ([]wantedLock, error) {
	names := slices.Compact(slices.Sorted(slices.Values(o.Names)))
	if o.Slots < 0 || o.Slots > maxSlots || o.Slots > 0 && len(names) != 1 {
		return nil, fmt.Errorf("%w: a semaphore has one name and 1 to %d slots", ErrHoldUsage, maxSlots)
	}
	outer, err := outerLocks(o.Env)
	if err != nil {
		return nil, err
	}
	var wanted []wantedLock
	for _, name := range names {
		w := wantedLock{name: name, keys: []string{name}}
		if o.Slots > 0 {
			w.keys = nil
			for i := range o.Slots {
				w.keys = append(w.keys, name+":"+strconv.Itoa(i+1))
			}
		}
		for _, key := range w.keys {
			if err := redisconn.CheckKey(key); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrHoldUsage, err)
			}
			if i := slices.IndexFunc(outer, func(l outerLock) bool { return l.key == key }); i >= 0 {
				w.outer = &outer[i]
			}
		}
		wanted = append(wanted, w)
	}
	return wanted, inOrder(wanted, outer, o.Wait)
}

// inOrder refuses to wait for ever for a lock that sorts before one that is held:
// whoever holds it may be waiting for ours. With a bound the wait ends.
func inOrder(wanted []wantedLock, outer []outerLock, wait time.Duration) error {
	if wait >= 0 {
		return nil
	}
	for _, w := range wanted {
		for _, held := range outer {
			if w.outer == nil && w.keys[0] < held.key {
				return fmt.Errorf("%w: the command around this one holds %q, and %q, which sorts before it, would be waited for for ever: two such commands could wait for each other; take both at once in the outer command, or give --wait or --no-wait",
					ErrHoldUsage, held.key, w.name)
			}
		}
	}
	return nil
}

// outerLocks reads what the `baton lock` around this process has left in the
// environment: words of name=owner:epoch, the name with % for what is not a letter.
func outerLocks(env []string) ([]outerLock, error) {
	var locks []outerLock
	for word := range strings.FieldsSeq(variable(env, envLocks)) {
		name, term, _ := strings.Cut(word, "=")
		owner, epoch, ok := strings.Cut(term, ":")
		key, err := url.QueryUnescape(name)
		number, parseErr := strconv.ParseInt(epoch, 10, 64)
		if err != nil || parseErr != nil || !ok || key == "" || owner == "" {
			return nil, fmt.Errorf("%w: $%s is not what baton lock writes (at %q): unset it", ErrHoldUsage, envLocks, word)
		}
		locks = append(locks, outerLock{key, owner, number})
	}
	return locks, nil
}

// environment is what the command gets.
func (h *holding) environment() []string {
	locks, _ := outerLocks(h.o.Env) // they were read before
	var first outerLock
	slot := ""
	for _, w := range h.wanted {
		held := w.outer
		if held == nil {
			t := h.takings[slices.IndexFunc(h.takings, func(t *taking) bool { return t.name == w.name })]
			l := t.held()
			held = &l
			locks = append(locks, l)
		}
		if w.name == h.o.Names[0] {
			first = *held
			if h.o.Slots > 0 {
				slot = strconv.Itoa(slices.Index(w.keys, held.key) + 1)
			}
		}
	}
	words := make([]string, len(locks))
	for i, l := range locks {
		words[i] = fmt.Sprintf("%s=%s:%d", url.QueryEscape(l.key), l.owner, l.epoch)
	}
	env := h.o.Env
	for _, v := range []struct{ name, value string }{
		{"BATON_NODE_ID", h.config.Node.ID},
		{"BATON_LOCK_KEY", first.key},
		{"BATON_OWNER", first.owner},
		{"BATON_EPOCH", strconv.FormatInt(first.epoch, 10)},
		{envLocks, strings.Join(words, " ")},
		{envSlot, slot},
	} {
		env = slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, v.name+"=") })
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}

// variable finds a variable in an environment; the last one counts.
func variable(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}
