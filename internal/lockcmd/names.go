package lockcmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/command/held"
	"baton/internal/redisconn"
)

// These environment variables are set for a command under locks.
const (
	envSlot = "BATON_SLOT" // the slot of a semaphore
)

// maxSlots limits the number of slots of a semaphore, because a process tries to take one slot after the other.
const maxSlots = 100

// wantedLock is a name to lock.
type wantedLock struct {
	name string
	keys []string // the keys of the slots; without slots the name alone
	// outer is set if the outer command already holds this lock.
	outer *held.Lock
}

// plan sorts the names, and finds the locks that the outer command already holds.
func plan(o Options) ([]wantedLock, error) {
	names := slices.Compact(slices.Sorted(slices.Values(o.Names)))
	if o.Slots < 0 || o.Slots > maxSlots || o.Slots > 0 && len(names) != 1 {
		return nil, fmt.Errorf("%w: a semaphore has one name and 1 to %d slots", ErrUsage, maxSlots)
	}
	outer, err := held.Read(o.Env)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
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
				return nil, fmt.Errorf("%w: %w", ErrUsage, err)
			}
			if i := slices.IndexFunc(outer, func(l held.Lock) bool { return l.Key == key }); i >= 0 {
				w.outer = &outer[i]
			}
		}
		wanted = append(wanted, w)
	}
	return wanted, inOrder(wanted, outer, o.Wait)
}

// inOrder refuses to wait without a limit for a lock whose name sorts before the name of a held lock. The holder of that lock may be
// waiting for our lock. A wait with a limit ends in any case.
func inOrder(wanted []wantedLock, outer []held.Lock, wait time.Duration) error {
	if wait >= 0 {
		return nil
	}
	for _, w := range wanted {
		for _, around := range outer {
			if w.outer == nil && w.keys[0] < around.Key {
				return fmt.Errorf("%w: the outer command holds %q, and this command would wait without limit for %q, "+
					"which sorts before it: two such commands could wait for each other; "+
					"take both locks at once in the outer command, or give --wait or --no-wait",
					ErrUsage, around.Key, w.name)
			}
		}
	}
	return nil
}

// environment returns the environment of the command.
func (h *lockRun) environment() []string {
	locks, _ := held.Read(h.o.Env) // an error was already reported when plan read the locks
	var first held.Lock
	slot := ""
	for _, w := range h.wanted {
		lock := w.outer
		if lock == nil {
			t := h.attempts[slices.IndexFunc(h.attempts, func(t *lockAttempt) bool { return t.name == w.name })]
			l := t.held()
			lock = &l
			locks = append(locks, l)
		}
		if w.name == h.o.Names[0] {
			first = *lock
			if h.o.Slots > 0 {
				slot = strconv.Itoa(slices.Index(w.keys, lock.Key) + 1)
			}
		}
	}
	words := make([]string, len(locks))
	for i, l := range locks {
		words[i] = l.String()
	}
	env := h.o.Env
	for _, v := range []struct{ name, value string }{
		{"BATON_NODE_ID", h.config.Node.ID},
		{"BATON_LOCK_KEY", first.Key},
		{"BATON_OWNER", first.Owner},
		{"BATON_EPOCH", strconv.FormatInt(first.Epoch, 10)},
		{held.Locks, strings.Join(words, " ")},
		{envSlot, slot},
	} {
		env = slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, v.name+"=") })
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}
