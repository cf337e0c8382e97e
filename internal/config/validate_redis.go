package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"baton/internal/text"
)

// redis checks a Redis. It never quotes a URL or an address, because they may contain a password even if they cannot be parsed.
func (v *validator) redis(r Redis) {
	v.deployment(r)
	if r.URL != "" {
		v.url(r.At("url"), r.URL)
	}
	if r.Cluster != nil {
		v.addresses(r.At("cluster"), r.Cluster, "10.0.0.1:7000")
	}
	v.sentinel(r)
	v.tls(r)
	v.credentials(r)
}

// deployment checks that exactly one setting names the servers of the data.
func (v *validator) deployment(r Redis) {
	chosen := ""
	for _, d := range []struct {
		name string
		set  bool
	}{{"url", r.URL != ""}, {"sentinel", r.Sentinel != nil}, {"cluster", r.Cluster != nil}} {
		switch {
		case !d.set:
		case chosen == "":
			chosen = d.name
		default:
			v.fail(r.At(d.name), "%s is set too; keep one of them: url for one server, "+
				"sentinel for one with replicas, cluster for a Redis Cluster", r.At(chosen))
		}
	}
	v.required(r.At("url"), chosen, "redis://127.0.0.1:6379/0")
	switch {
	case r.Database < 0:
		v.fail(r.At("database"), "%d: must be 0 or more", r.Database)
	case r.Database > 0 && r.URL != "":
		v.fail(r.At("database"),
			"a URL has its database at its own end, redis://host:port/db or unix:///path?db=0; write it there and remove this")
	case r.Database > 0 && r.Cluster != nil:
		v.fail(r.At("database"), "a Redis Cluster has only database 0; remove this")
	}
}

// encodePassword is the remedy if a part of the password in a URL was parsed as the host.
const encodePassword = "percent-encode special characters of the password (@ is %40, : is %3A, / is %2F, ? is %3F, # is %23, % is %25)"

// url checks one server's URL.
func (v *validator) url(path, raw string) {
	const want = "write redis://host:port/db, rediss://host:port/db for TLS, or unix:///path/to/redis.sock"
	u, err := url.Parse(raw)
	if err != nil {
		v.fail(path, "not a URL; "+want)
		return
	}
	after := u.EscapedPath() + u.RawQuery + u.EscapedFragment()
	if u.Scheme != "unix" && u.Host != "" && (!text.IsHost(u.Hostname()) || strings.Contains(after, "@")) {
		v.fail(path, "the host is not a valid name: %s; or write the password into password_file", encodePassword)
		return
	}
	database := strings.Trim(u.Path, "/")
	switch u.Scheme {
	case "redis", "rediss", "valkey", "valkeys":
		if u.Hostname() == "" || u.Port() != "" && !validPort(u.Port()) {
			v.fail(path, want)
			return
		}
		if u.RawQuery != "" || u.Fragment != "" {
			v.fail(path, "has a ? or # part, which has no effect; "+want)
		}
	case "unix":
		if u.Host != "" || u.OmitHost || database == "" {
			v.fail(path, "a socket's URL has three slashes and then its path; write unix:///path/to/redis.sock")
			return
		}
		database = u.Query().Get("db")
		if u.Fragment != "" || u.RawQuery != "" && u.RawQuery != "db="+database {
			v.fail(path, "only ?db=N may follow a socket's path; write unix:///path/to/redis.sock?db=0")
			return
		}
	default:
		if strings.Contains(u.Scheme, "sentinel") {
			v.fail(path, "a URL is one server; remove it, and write the Sentinels under %s.sentinel", parent(path))
			return
		}
		v.fail(path, want)
		return
	}
	if n, err := strconv.Atoi(database); database != "" && (err != nil || n < 0) {
		v.fail(path, "the part behind the port or ?db= is the number of a database; "+want)
	}
	if _, hasPassword := u.User.Password(); u.User.Username() != "" && !hasPassword {
		v.fail(path, "has a user without a password; set username: and password_file: instead")
	}
}

// addresses checks a list of addresses of the form host:port.
func (v *validator) addresses(path string, list []string, example string) {
	if len(list) == 0 {
		v.fail(path, "required: at least one host:port, for example [%s]", example)
	}
	for i, addr := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		host, port, err := net.SplitHostPort(addr)
		switch first := slices.Index(list, addr); {
		case strings.ContainsAny(addr, "/@"):
			v.fail(at, "write host:port alone, for example %s; user and password have keys of their own, and tls: {} turns on TLS", example)
		case err != nil, !text.IsHost(host), !validPort(port):
			v.fail(at, "write host:port, for example %s", example)
		case first < i:
			v.fail(at, "the same as %s[%d]; write each once", path, first)
		}
	}
}

func validPort(port string) bool {
	n, err := strconv.Atoi(port)
	return err == nil && n > 0 && n <= 65535
}

func (v *validator) sentinel(r Redis) {
	s := r.Sentinel
	if s == nil {
		return
	}
	v.required(r.At("sentinel.master"), s.Master, "mymaster, the name under which the Sentinels watch the master")
	v.addresses(r.At("sentinel.addresses"), s.Addresses, "10.0.0.1:26379")
	if s.PasswordFile != "" && s.PasswordInline != "" {
		v.fail(r.At("sentinel.password"), "password_file is set too; keep one of them")
	}
	if s.Username != "" && s.PasswordFile == "" && s.PasswordInline == "" {
		v.fail(r.At("sentinel.username"), "has no effect without a password; set password_file too")
	}
}

// quorum checks that the masters are independent, as far as the configuration shows.
func (v *validator) quorum() {
	list := v.Redis.Quorum
	if list == nil {
		return
	}
	if v.Redis.URL == "" {
		v.fail("redis.quorum",
			"quorum needs redis.url, which names the server with the data; remove quorum, or write url instead of sentinel or cluster")
	}
	if len(list) < 3 {
		v.fail("redis.quorum", "%d masters; write 3 or 5, because with fewer than 3 the election stops when one master is "+
			"unavailable", len(list))
	}
	if v.Election.WaitReplicas > 0 {
		v.fail("election.wait_replicas", "the lock is on the masters of redis.quorum, which have no replicas; remove one of the two")
	}
	seen := map[string]int{}
	for i, raw := range list {
		at := fmt.Sprintf("redis.quorum[%d]", i)
		v.url(at, raw)
		server := serverOf(raw)
		if first, twice := seen[server]; twice && server != "" {
			v.fail(at, "the same server as redis.quorum[%d]; the masters must be independent of each other", first)
			continue
		}
		seen[server] = i
	}
}

// serverOf returns the server in a URL, without database and user.
func serverOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Host)
	switch {
	case u.Scheme == "unix":
		return u.Path
	case host != "" && u.Port() == "":
		return net.JoinHostPort(strings.ToLower(u.Hostname()), "6379")
	}
	return host
}

func (v *validator) tls(r Redis) {
	t := r.TLS
	if t == nil {
		return
	}
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		v.fail(r.At("tls.cert_file"), "needs key_file too, the certificate's private key")
	case t.CertFile == "" && t.KeyFile != "":
		v.fail(r.At("tls.key_file"), "needs cert_file too, the key's certificate")
	}
	if net.ParseIP(t.ServerName) == nil && strings.ContainsAny(t.ServerName, ":/@ ") {
		v.fail(r.At("tls.server_name"), "write a host name alone, as in the server's certificate")
	}
	// tls: must not be set if no connection is encrypted.
	if u, err := url.Parse(r.URL); err != nil || slices.ContainsFunc(r.Quorum, encryptedURL) {
		return
	} else if u.Scheme == "unix" {
		v.fail(r.At("tls"), "a Unix socket is not encrypted; remove tls")
	} else if u.Scheme == "redis" || u.Scheme == "valkey" {
		v.fail(r.At("tls"), "%s is not encrypted; write %ss:// there, or remove tls", r.At("url"), u.Scheme)
	}
}

// credentials checks that there is at most one user and one password.
func (v *validator) credentials(r Redis) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return
	}
	_, inURL := u.User.Password()
	if inURL && r.PasswordFile != "" {
		v.fail(r.At("password_file"), "%s has a password too; keep one of them", r.At("url"))
	}
	if inURL && r.PasswordInline != "" {
		v.fail(r.At("password"), "%s has a password too; keep one of them", r.At("url"))
	}
	if r.PasswordFile != "" && r.PasswordInline != "" {
		v.fail(r.At("password"), "password_file is set too; keep one of them")
	}
	if r.Username == "" {
		return
	}
	if u.User.Username() != "" {
		v.fail(r.At("username"), "%s has a user too; keep one of them", r.At("url"))
	} else if !inURL && r.PasswordFile == "" && r.PasswordInline == "" {
		v.fail(r.At("username"), "has no effect without a password; set password_file too")
	}
}
