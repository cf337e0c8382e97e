package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"baton/internal/certificate"
	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/secret"
	"baton/internal/status/auth"
)

// CheckFiles checks the files that a configuration names, with the rights of this process's
// user. A file that the daemon could not use is wrong. A file that this user may not read is
// a doubt, because only the daemon can tell whether it may. For the daemon's own user, the
// owner of its state directory, such a file is wrong.
func CheckFiles(c config.Config, o Options) (wrong, doubts config.Problems) {
	self, daemonUser := strconv.Itoa(os.Geteuid()), o.daemonUser()
	unread := false
	for _, f := range c.Files() {
		switch err := usable(f); {
		case err == nil:
			continue
		case errors.Is(err, fs.ErrNotExist) && notHandedOver(f.Path, o):
			doubts = append(doubts, c.Problem(f.Key, f.Path+" is not there yet: systemd brings it when the unit starts, "+
				"if the unit's LoadCredential= names it"))
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, c.Problem(f.Key, f.Path+" does not exist; create it, or correct the path"))
		case errors.Is(err, fs.ErrPermission) && self == daemonUser:
			wrong = append(wrong, c.Problem(f.Key, fmt.Sprintf("the daemon's user, %s, may not read %s; let it, "+
				"by the file's group, or hand the file over by LoadCredential=", userName(self), closed(f.Path))))
		case errors.Is(err, fs.ErrPermission):
			doubts = append(doubts, c.Problem(f.Key, fmt.Sprintf("user %s may not read %s, so it was not read; "+
				"the daemon's user must be able to: run it as that user: sudo -u %s baton config check",
				userName(self), closed(f.Path), cmp.Or(userName(daemonUser), "baton"))))
		default:
			wrong = append(wrong, keyed(c, f.Key, err))
		}
		unread = unread || f.Kind == config.FileCertificates || f.Kind == config.FilePrivateKey
	}
	if unread {
		return wrong.Sorted(), doubts.Sorted() // nor can they be read together
	}
	for _, r := range c.AllStores() {
		if _, err := r.TLSConfig(); err != nil {
			wrong = append(wrong, keyed(c, r.At("tls"), err))
		}
	}
	if _, err := certificate.Open(config.HTTP{Listen: c.HTTP.Listen, TLS: c.HTTP.TLS}); err != nil {
		wrong = append(wrong, keyed(c, "http.tls", err))
	}
	return wrong.Sorted(), doubts.Sorted()
}

// CheckDatabases are databases whose DSN cannot be used: with them the daemon does not start. Without files it
// checks the DSNs that the configuration has itself.
func CheckDatabases(c config.Config, files bool) config.Problems {
	return site.CheckDatabases(c, files)
}

// credentialsEnv is where systemd puts what LoadCredential= names.
const credentialsEnv = "CREDENTIALS_DIRECTORY"

// notHandedOver reports whether a file is one that systemd hands over, and has not yet:
// its directory is there as long as the unit runs.
func notHandedOver(path string, o Options) bool {
	dir := o.env(credentialsEnv)
	if dir == "" || !strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") {
		return false
	}
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// usable returns why a file lacks the content that its key needs. It does not parse
// certificates: they can only be checked together.
func usable(f config.File) error {
	if info, err := os.Stat(f.Path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // reading a pipe would take it from its reader
	}
	switch f.Kind {
	case config.FileToken:
		if f.Key == "http.read_token_file" {
			return auth.CheckTokens("", f.Path)
		}
		return auth.CheckTokens(f.Path, "")
	case config.FileVariables:
		return secret.ReadEnvFile(f.Path, map[string]string{})
	case config.FileSecret:
		_, err := secret.ReadFile(f.Path)
		return err
	default:
		_, err := secret.ReadBounded(f.Path)
		return err
	}
}

// keyed makes a problem of an error. If the error's text begins with a key, that key
// becomes the problem's place.
func keyed(c config.Config, key string, err error) config.Problem {
	text := err.Error()
	if first, rest, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(first, key) {
		key, text = first, rest
	}
	return c.Problem(key, text)
}

// closed names a file that may not be read, with its owner and its mode. If a directory
// denies access, it names that directory's.
func closed(path string) string {
	at := path
	info, err := os.Stat(at)
	for ; err != nil && at != filepath.Dir(at); info, err = os.Stat(at) {
		at = filepath.Dir(at)
	}
	if err != nil {
		return path
	}
	uid, gid := ownerOf(info)
	whose := fmt.Sprintf("%s:%s, mode %04o", userName(uid), groupName(gid), info.Mode().Perm())
	if at == path {
		return fmt.Sprintf("%s (%s)", path, whose)
	}
	return fmt.Sprintf("%s (%s is %s)", path, at, whose)
}

// daemonUser is the id of the user that baton runs as on this host; "" if that is not known.
func (o Options) daemonUser() string {
	dir, _, _ := strings.Cut(o.env("STATE_DIRECTORY"), ":")
	info, err := os.Stat(cmp.Or(dir, o.usualState()))
	if err != nil {
		return ""
	}
	owner, _ := ownerOf(info)
	return owner
}

// ownerOf are the ids of the user and the group that a file belongs to.
func ownerOf(info fs.FileInfo) (uid, gid string) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", ""
	}
	return strconv.FormatUint(uint64(s.Uid), 10), strconv.FormatUint(uint64(s.Gid), 10)
}

// userName is a user's name, or the id of one that has none.
func userName(id string) string {
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

func groupName(id string) string {
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}
