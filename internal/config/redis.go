package config

import "net/url"

// Redis is the server with the lock, and with the data to flush that is in no other store. One of URL, Sentinel and Cluster names the
// servers; Quorum puts the lock, and only that, elsewhere. ${NAME} is replaced from the environment in addresses, passwords and file
// names.
type Redis struct {
	// URL is one server: redis://host:port/db, rediss:// for TLS, or
	// unix:///path/to.sock?db=0; valkey:// and valkeys:// mean the same as redis://
	// and rediss://. It may hold a user and a password, but password_file keeps
	// them out of the file. Default: redis://127.0.0.1:6379/0, unless sentinel or
	// cluster is set.
	URL string `yaml:"url" config:"expand"`
	// Username is the ACL user. Default: none, which Redis takes as "default".
	Username string `yaml:"username"`
	// PasswordFile holds the password, one line. It is read at every dial, so a
	// rotated password needs no restart. Default: none.
	PasswordFile string `yaml:"password_file" config:"expand"`
	// PasswordInline is the password itself, for one that comes from the
	// environment: password: ${REDIS_PASSWORD}. Default: none.
	PasswordInline string `yaml:"password" config:"expand"`
	// Database is the number of the database behind Sentinels; a URL has its own,
	// and a Cluster has only 0. Default: 0.
	Database int `yaml:"database"`
	// Sentinel finds the master of a replicated Redis. Default: none.
	Sentinel *Sentinel `yaml:"sentinel"`
	// Cluster is host:port of some nodes of a Redis Cluster; they name the others.
	// Default: none.
	Cluster []string `yaml:"cluster" config:"expand"`
	// Quorum is the URLs of three or more independent masters: the holder of the lock on most of them leads (Redlock). The data stays at
	// url. A URL without a user and password of its own takes username, password and password_file from here. Default: none, the lock is
	// with the data.
	Quorum []string `yaml:"quorum" config:"expand"`
	// TLS says how connections are encrypted. For Sentinel and Cluster its presence, tls: {}, turns encryption on; a URL turns it on by
	// rediss://. Default: none.
	TLS *TLS `yaml:"tls"`

	StoreName string // its name under stores, set by Config.Store; empty: it is redis itself
}

// Sentinel names the master, and the Sentinels that know its address.
type Sentinel struct {
	// Master is the name that the Sentinels watch it by. Required.
	Master string `yaml:"master"`
	// Addresses is host:port of each Sentinel. Required.
	Addresses []string `yaml:"addresses" config:"expand"`
	// Username is the Sentinels' own ACL user; that of Redis is not sent to them. Default: none.
	Username string `yaml:"username"`
	// PasswordFile holds the Sentinels' own password, one line, read at every dial.
	// Default: none.
	PasswordFile string `yaml:"password_file" config:"expand"`
	// PasswordInline is the password itself, as in Redis. Default: none.
	PasswordInline string `yaml:"password" config:"expand"`
}

// TLS has the authorities that we trust, and our own certificate. The files are read at every dial, so renewed certificates need no
// restart. They are PEM.
type TLS struct {
	// CAFile holds the authorities that may have signed the server's certificate.
	// Default: those of the operating system.
	CAFile string `yaml:"ca_file" config:"expand"`
	// CertFile and KeyFile are our own certificate and its private key, for servers
	// that ask for one; both or neither. Default: none.
	CertFile string `yaml:"cert_file" config:"expand"`
	KeyFile  string `yaml:"key_file" config:"expand"`
	// ServerName is the name in the server's certificate, if it differs from the host that is dialled. Default: that host.
	ServerName string `yaml:"server_name"`
}

// Address is the URL without user and password: it may be printed, and dialled together with User and Password. It is empty for Sentinel
// and Cluster.
func (r Redis) Address() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// User is the ACL user, or empty for Redis' default one.
func (r Redis) User() string {
	if u, err := url.Parse(r.URL); err == nil && u.User.Username() != "" {
		return u.User.Username()
	}
	return r.Username
}

// Masters are the servers of the quorum, each as a Redis of its own, in the order of the file; none without a quorum.
func (r Redis) Masters() []Redis {
	var out []Redis
	for _, raw := range r.Quorum {
		m := Redis{URL: raw, Username: r.Username, PasswordFile: r.PasswordFile, PasswordInline: r.PasswordInline, TLS: r.TLS}
		if u, err := url.Parse(raw); err == nil && u.User != nil {
			m.Username, m.PasswordFile, m.PasswordInline = "", "", ""
		}
		out = append(out, m)
	}
	return out
}

// encrypted reports whether the data's connections use TLS.
func (r Redis) encrypted() bool {
	if r.URL == "" {
		return r.TLS != nil
	}
	return encryptedURL(r.URL)
}

func encryptedURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "rediss" || u.Scheme == "valkeys")
}
