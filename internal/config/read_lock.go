package config

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// ReadLock reads only the place and the format of a lock, which are in the sections "redis" and "election". It is used to release a lock
// that a daemon has left behind. The daemon may have run with an older version of the file. A job that an operator has made invalid since
// then must not prevent the release. So ReadLock does not read databases and jobs, and does not report their problems.
func ReadLock(in Input) (Config, error) {
	c, found, err := in.read(loadLock)
	if err != nil {
		return Config{}, err
	}
	c.Databases, c.Notify, c.Jobs = nil, nil, nil
	found = slices.DeleteFunc(firstOfEach(found), func(p Problem) bool { return !c.misplaces(p) })
	return c, found.err()
}

// misplaces reports whether a problem could result in the release of another lock than the daemon's lock, because the lock's place or
// format may be wrong.
func (c Config) misplaces(p Problem) bool {
	section, _, nested := strings.Cut(p.Path, ".")
	_, redisIsSet := c.places["redis"]
	switch {
	case p.Path == "", section == "redis", p.Path == "election.acquire", p.Path == "election.lock_format":
		return true
	case !nested && !strings.Contains(section, "["): // such as a mistyped redsi:
		_, _, known := fieldNamed(reflect.ValueOf(c), section)
		return !known && !redisIsSet
	}
	return false
}

// loadLock works like Load. If the whole file is not valid YAML, it reads only the sections "redis" and "election", if these two are valid.
func loadLock(path string, env Lookup) (Config, error) {
	data, err := readAll(path)
	if err != nil {
		return Config{}, err
	}
	c, whole := parse(path, data, env)
	problems, _ := errors.AsType[Problems](whole)
	if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Path == "" }) || len(data) > maxFile {
		return c, whole
	}
	part, found := lockSections(data)
	if !found {
		return c, whole
	}
	return parse(path, part, env)
}

// lockSections replaces all lines outside of the sections "redis" and "election" with empty lines, so that the remaining lines keep their
// numbers. It returns false if there is no section "redis".
func lockSections(data []byte) (part []byte, found bool) {
	within := false
	for line := range bytes.Lines(data) {
		if top := bytes.TrimSpace(line); len(top) > 0 && top[0] != '#' && bytes.IndexAny(line, " \t") != 0 {
			section, _, _ := bytes.Cut(top, []byte(":"))
			within = string(section) == "redis" || string(section) == "election"
			found = found || string(section) == "redis"
		}
		if !within {
			line = []byte("\n")
		}
		part = append(part, line...)
	}
	return part, found
}
