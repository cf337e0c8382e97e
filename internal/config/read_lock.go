package config

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
)

// ReadLock reads only the place and the format of a lock: the sections redis and election. It serves the release of a lock that a daemon
// has left behind: that daemon may have run with an older file than the present one, and a job that an operator has broken since must not
// prevent the release. Databases and jobs are not read; their problems are not reported.
func ReadLock(in Input) (Config, error) {
	c, found, err := in.read(loadLock)
	if err != nil {
		return Config{}, err
	}
	c.Databases, c.Notify, c.Jobs = nil, nil, nil
	found = slices.DeleteFunc(firstOfEach(found), func(p Problem) bool { return !c.misplaces(p) })
	return c, found.err()
}

// misplaces reports whether this problem could make us look for another lock than the daemon had: one elsewhere, or of another format.
func (c Config) misplaces(p Problem) bool {
	section, _, nested := strings.Cut(p.Path, ".")
	_, redisIsSet := c.places["redis"]
	switch {
	case p.Path == "", section == "redis", p.Path == "election.acquire", p.Path == "election.lock_format":
		return true
	case !nested && !strings.Contains(section, "["): // redsi:, for example
		_, _, known := fieldNamed(reflect.ValueOf(c), section)
		return !known && !redisIsSet
	}
	return false
}

// loadLock is Load. If the file as a whole is not YAML, it reads the two sections, provided that they are.
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

// lockSections blanks all lines outside the sections redis and election, so that the others keep their numbers; false without a section
// redis.
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
