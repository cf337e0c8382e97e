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

// CheckFiles checks the files that a configuration names, with the rights of this process's user. The result wrong lists the files that the
// daemon cannot use. The result doubts lists the files that only the daemon can check, such as files that this user may not read. But if
// this user is the daemon's own user, who owns the daemon's state directory, files that it may not read are in the result wrong.
func CheckFiles(c config.Config, o Options) (wrong, doubts config.Problems) {
	self, daemonUser := strconv.Itoa(os.Geteuid()), o.daemonUser()
	unread := false
	for _, f := range c.Files() {
		switch err := usable(f); {
		case err == nil:
			continue
		case errors.Is(err, fs.ErrNotExist) && notHandedOver(f.Path, o):
			doubts = append(doubts, c.Problem(f.Key, f.Path+" is not there yet: systemd provides it when the unit starts, "+
				"if the unit's LoadCredential= names it"))
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, c.Problem(f.Key, f.Path+" does not exist; create it, or correct the path"))
		case errors.Is(err, fs.ErrPermission) && self == daemonUser:
			wrong = append(wrong, c.Problem(f.Key, fmt.Sprintf("the daemon's user, %s, may not read %s; allow this "+
				"through the file's group, or pass the file by LoadCredential=", userName(self), closed(f.Path))))
		case errors.Is(err, fs.ErrPermission):
			doubts = append(doubts, c.Problem(f.Key, fmt.Sprintf("user %s may not read %s, so baton did not read it; "+
				"check it as the daemon's user: sudo -u %s baton config check",
				userName(self), closed(f.Path), cmp.Or(userName(daemonUser), "baton"))))
		default:
			wrong = append(wrong, keyed(c, f.Key, err))
		}
		unread = unread || f.Kind == config.FileCertificates || f.Kind == config.FilePrivateKey
	}
	if unread {
		return wrong.Sorted(), doubts.Sorted() // the certificate files also cannot be read together
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

// CheckDatabases returns one problem for each database whose DSN cannot be used. The daemon does not start with such a DSN. If files is
// false, it checks only the DSNs that the configuration itself contains, and not the DSNs in files.
func CheckDatabases(c config.Config, files bool) config.Problems {
	return site.CheckDatabases(c, files)
}

// credentialsEnv is the name of the environment variable that systemd sets to a directory. There systemd puts the files that the setting
// LoadCredential= names.
const credentialsEnv = "CREDENTIALS_DIRECTORY"

// notHandedOver reports whether systemd will provide this file when the unit starts, but has not provided it yet. The file's directory
// exists only while the unit runs.
func notHandedOver(path string, o Options) bool {
	dir := o.env(credentialsEnv)
	if dir == "" || !strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") {
		return false
	}
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// usable returns an error if a file does not contain what its key in the configuration needs. It does not parse certificates, because a
// certificate and its key can only be checked together.
func usable(f config.File) error {
	if info, err := os.Stat(f.Path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil // reading a pipe would take the content away from its reader
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

// keyed converts an error to a problem. If the error's text begins with a setting that is below the argument key, this setting becomes the
// place of the problem. Otherwise the argument key becomes its place.
func keyed(c config.Config, key string, err error) config.Problem {
	text := err.Error()
	if first, rest, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(first, key) {
		key, text = first, rest
	}
	return c.Problem(key, text)
}

// closed returns a text with the owner and the mode of a file that this user may not read. If a directory on the way to the file denies
// access, the text instead describes that directory.
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

// daemonUser returns the id of the user that runs baton on this host, or "" if that is unknown.
func (o Options) daemonUser() string {
	dir, _, _ := strings.Cut(o.env("STATE_DIRECTORY"), ":")
	info, err := os.Stat(cmp.Or(dir, o.usualState()))
	if err != nil {
		return ""
	}
	owner, _ := ownerOf(info)
	return owner
}

// ownerOf returns the ids of a file's user and group.
func ownerOf(info fs.FileInfo) (uid, gid string) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", ""
	}
	return strconv.FormatUint(uint64(s.Uid), 10), strconv.FormatUint(uint64(s.Gid), 10)
}

// userName returns a user's name, or the id if the user has no name.
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
