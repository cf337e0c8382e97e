package program

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"baton/internal/command"
	"baton/internal/config"
)

// account is a user and group of this host for a command.
type account struct {
	rights *command.User // nil means the daemon's user and group
	// variables contains the variables that programs expect after a login.
	variables map[string]string
}

// settingsOf returns the settings of a command that differ from the daemon's settings.
func settingsOf(j config.Job) (command.Settings, account, error) {
	s := command.Settings{Limits: limitsOf(j.Limits)}
	if j.Umask != "" {
		mask, err := strconv.ParseUint(j.Umask, 8, 16)
		if err != nil {
			return s, account{}, fmt.Errorf("umask: %w", err)
		}
		value := int(mask)
		s.Umask = &value
	}
	if j.Nice != 0 {
		s.Nice = &j.Nice
	}
	who, err := accountOf(j.User, j.Group)
	s.User = who.rights
	return s, who, err
}

func limitsOf(l config.Limits) []command.Limit {
	var all []command.Limit
	for _, limit := range []struct{ resource, most int }{
		{unix.RLIMIT_NOFILE, l.OpenFiles}, {unix.RLIMIT_NPROC, l.Processes}, {unix.RLIMIT_AS, l.AddressSpace},
		{unix.RLIMIT_FSIZE, l.FileSize}, {unix.RLIMIT_CPU, int(l.CPUTime.Seconds())},
	} {
		if limit.most > 0 {
			all = append(all, command.Limit{Resource: limit.resource, Max: uint64(limit.most)})
		}
	}
	return all
}

// accountError is an error about a user or group.
type accountError struct{ setting, why string }

func (e *accountError) Error() string { return e.setting + ": " + e.why }

// accountOf finds a user and a group. The name may be the number of a user that has no name on this host. Such a user has no further
// groups.
func accountOf(name, group string) (account, error) {
	if name == "" && group == "" {
		return account{}, nil
	}
	a := account{rights: &command.User{UID: -1, GID: -1}, variables: map[string]string{}}
	if name != "" {
		if err := a.be(name); err != nil {
			return account{}, err
		}
	}
	if group != "" {
		gid, err := groupNumber(group)
		if err != nil {
			return account{}, err
		}
		a.rights.GID = gid
	}
	if (a.rights.UID == 0 || a.rights.GID == 0) && os.Geteuid() != 0 {
		return account{}, &accountError{"user", "it is root, or in root's group; a daemon without these rights cannot give " +
			"them to a command"}
	}
	return a, nil
}

func (a *account) be(name string) error {
	u, unknown := user.Lookup(name)
	if id, err := strconv.Atoi(name); unknown != nil && err == nil {
		if u, unknown = user.LookupId(name); unknown != nil { // an id without a name
			a.rights.UID, a.rights.GID = id, id
			return nil //nolint:nilerr // it need not have one
		}
	}
	if unknown != nil {
		return &accountError{"user", name + " is not in /etc/passwd of this host"}
	}
	groups, err := u.GroupIds()
	if err != nil {
		return &accountError{"user", "the groups of " + name + ": " + err.Error()}
	}
	numbers := make([]int, 0, len(groups)+2)
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.Atoi(text)
		if err != nil {
			return &accountError{"user", fmt.Sprintf("/etc/passwd or /etc/group has %q instead of a number for %s", text, name)}
		}
		numbers = append(numbers, n)
	}
	a.rights.UID, a.rights.GID, a.rights.Groups = numbers[0], numbers[1], slices.Compact(slices.Sorted(slices.Values(numbers[2:])))
	a.variables = map[string]string{"HOME": u.HomeDir, "USER": u.Username, "LOGNAME": u.Username}
	return nil
}

func groupNumber(name string) (int, error) {
	if g, err := user.LookupGroup(name); err == nil {
		return strconv.Atoi(g.Gid)
	}
	if n, err := strconv.Atoi(name); err == nil {
		return n, nil
	}
	return 0, &accountError{"group", name + " is not in /etc/group of this host"}
}

// Refused returns the settings of command jobs that this process cannot apply, each with its position in the configuration. It calls the
// function try with the settings of each job.
func Refused(c config.Config, try func(command.Settings) error) config.Problems {
	var found config.Problems
	for i, j := range c.Jobs {
		if !j.IsCommand() {
			continue
		}
		s, _, err := settingsOf(j)
		if err == nil && !s.Empty() {
			err = try(s)
		}
		if err != nil {
			found = append(found, c.Problem(placeOf(i, err), explained(err)))
		}
	}
	return found.Sorted()
}

// placeOf returns the position of the setting that an error is about.
func placeOf(job int, err error) string {
	at := fmt.Sprintf("jobs[%d]", job)
	if refused, ok := errors.AsType[*command.SettingError](err); ok {
		return at + "." + refused.Setting
	}
	if unknown, ok := errors.AsType[*accountError](err); ok {
		return at + "." + unknown.setting
	}
	return at
}

// explained returns an error text with the remedy for a setting that the kernel refuses.
func explained(err error) string {
	refused, ok := errors.AsType[*command.SettingError](err)
	denied := []error{syscall.EPERM, syscall.EACCES, syscall.EINVAL}
	if !ok || !slices.Contains(denied, error(refused.Errno)) {
		return err.Error()
	}
	return refused.Error() + "; " + map[string]string{
		"user": "the daemon needs CAP_SETUID, CAP_SETGID and CAP_KILL: under systemd the drop-in command-users.conf gives them",
		"nice": "a value below the daemon's needs CAP_SYS_NICE; under systemd every value needs the drop-in command-jobs.conf",
		"limits": "a command cannot get a higher limit than the daemon: raise the daemon's limit, under systemd by " +
			"LimitNOFILE= or the like",
	}[refused.Setting]
}
