package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// work checks the flush or the command of a job. It returns false if there is no flush that needs further checks.
func (v *validator) work(path string, j Job) (flushes bool) {
	flushes = !reflect.ValueOf(j.Flush).IsZero()
	switch {
	case flushes && j.IsCommand():
		v.fail(path+".command", "the job has a flush, too; write two jobs, one for each")
		return false
	case !flushes && !j.IsCommand():
		if _, set := v.places[path+".command"]; set {
			v.fail(path+".command", "the command is empty; write a program and its arguments: [/usr/bin/report, --yesterday]")
		} else {
			v.fail(path+".flush", "required: flush, which moves data into a table, or command, which runs a program")
		}
		return false
	case flushes:
		v.onlyCommands(path, j)
		if j.Overlap == OverlapAllow {
			v.fail(v.whose(path, "overlap"), "a flush cannot run twice at a time; write forbid, queue_one or replace")
		}
		return true
	}
	v.command(path, j)
	return false
}

func (v *validator) onlyCommands(path string, j Job) {
	if v.own(path, j.Policy, "grace") {
		v.fail(path+".grace", "only for a job with a command; remove it")
	}
	for key, set := range map[string]bool{
		"shell": j.Shell, "working_dir": j.WorkingDir != "", "env": len(j.Env) > 0, "env_file": j.EnvFile != "",
		"secrets": len(j.Secrets) > 0, "stdin": j.Stdin != "", "log_file": j.LogFile != "",
		"success_exit_codes": len(j.SuccessExitCodes) > 0,
		"stop_signal":        j.StopSignal != "", "umask": j.Umask != "", "nice": j.Nice != 0, "limits": j.Limits != Limits{},
		"user": j.User != "", "group": j.Group != "",
	} {
		if set {
			v.fail(path+"."+key, "only for a job with a command; remove it")
		}
	}
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (v *validator) command(path string, j Job) {
	v.argv(path+".command", j.Command, j.Shell)
	v.program(path+".command", j.Command, j.Shell || j.WorkingDir != "")
	v.absolute(path+".working_dir", j.WorkingDir)
	v.absolute(path+".env_file", j.EnvFile)
	v.surroundings(path, j)
	for key, names := range map[string]map[string]string{"env": j.Env, "secrets": j.Secrets} {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			at := path + "." + key + "." + name
			_, twice := j.Env[name]
			switch {
			case !envName.MatchString(name):
				v.fail(at, "use letters, digits and underscores in the name")
			case strings.HasPrefix(name, "BATON_"):
				v.fail(at, "names that begin with BATON_ are reserved: baton sets these variables for the command")
			case strings.ContainsRune(names[name], 0):
				v.fail(at, "the text has a NUL character")
			case key == "env" && literal.MatchString(names[name]):
				v.fail(at, "${NAME} is not replaced here; the command has the daemon's own environment anyway: "+
					"write the value out, or put it into env_file")
			case key == "secrets" && names[name] == "":
				v.fail(at, "write the path of the file that holds the secret")
			case key == "secrets" && twice:
				v.fail(at, "it is under env too; keep one of them")
			case key == "secrets":
				v.absolute(at, names[name])
			}
		}
	}
}

// argv checks a command line.
func (v *validator) argv(path string, c Command, shell bool) {
	for i, arg := range c {
		if strings.ContainsRune(arg, 0) {
			v.fail(fmt.Sprintf("%s[%d]", path, i), "the text has a NUL character")
		}
	}
	switch {
	case c[0] == "":
		v.fail(path, "the program has no name")
	case shell && len(c) > 1:
		v.fail(path, "with shell: true the command is one text for /bin/sh -c; for a list of arguments remove shell")
	case !shell && len(c) == 1 && strings.ContainsAny(c[0], " \t\n|;&<>$`"):
		remedy := "write a list, [program, argument]"
		if !strings.HasPrefix(path, "notify") { // notify has no setting shell
			remedy += ", or add shell: true"
		}
		v.fail(path, "the command is one text with spaces or shell characters, so the whole text would be the program's name; %s", remedy)
	}
}

// program rejects a program whose path depends on the daemon's working directory. If the argument placed is true, the job sets "shell" or
// "working_dir", and any path is allowed.
func (v *validator) program(path string, c Command, placed bool) {
	if name := c[0]; !placed && strings.Contains(name, "/") && !filepath.IsAbs(name) && !strings.ContainsAny(name, " \t") {
		v.fail(path, "%q depends on where the daemon was started; write an absolute path, or a name alone, "+
			"which is searched for in PATH", name)
	}
}

// absolute rejects a path that depends on the daemon's working directory.
func (v *validator) absolute(at, path string) {
	if path != "" && !filepath.IsAbs(path) {
		v.fail(at, "%q depends on where the daemon was started; write an absolute path", path)
	}
}
