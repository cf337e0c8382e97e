package config

import "net/url"

// Redis is the server that holds the lock. It also holds the data to flush, unless that data is in a store. One of URL, Sentinel and
// Cluster names the servers; Quorum puts only the lock on other servers.
type Redis struct {
	// URL is one server: redis://host:port/db, rediss:// for TLS, or
	// unix:///path/to.sock?db=0; valkey:// and valkeys:// mean the same as redis://
	// and rediss://. It may hold a user and a password, but password_file keeps
	// them out of the file. Default: redis://127.0.0.1:6379/0, unless sentinel or
	// cluster is set.
	URL string `yaml:"url" config:"expand"`
	// Username is the ACL user. Default: none, which Redis takes as "default".
	Username string `yaml:"username"`
	// PasswordFile holds the password, one line. baton reads it at every dial, so a rotated password needs no restart. Default: none.
	PasswordFile string `yaml:"password_file" config:"expand"`
	// PasswordInline is the password itself, if it comes from the environment: password: ${REDIS_PASSWORD}. Default: none.
	PasswordInline string `yaml:"password" config:"expand"`
	// Database is the number of the database behind Sentinels; a URL has its own,
	// and a Cluster has only 0. Default: 0.
	Database int `yaml:"database"`
	// Sentinel finds the master of a replicated Redis. Default: none.
	Sentinel *Sentinel `yaml:"sentinel"`
	// Cluster is host:port of some nodes of a Redis Cluster; these nodes name the others. Default: none.
	Cluster []string `yaml:"cluster" config:"expand"`
	// Quorum is the URLs of three or more independent masters: the holder of the lock on most of them leads (Redlock). The data stays at
	// url. A URL without a user and password of its own uses the username, password and password_file of this section. Default: none, the
	// lock is with the data.
	Quorum []string `yaml:"quorum" config:"expand"`
	// TLS says how connections are encrypted. For Sentinel and Cluster its presence, tls: {}, turns encryption on; a URL turns it on by
	// rediss://. Default: none.
	TLS *TLS `yaml:"tls"`

	StoreName string // the name under stores, set by Config.Store; "" for the section redis
}

// Sentinel names the master, and the Sentinels that know its address.
type Sentinel struct {
	// Master is the name under which the Sentinels watch the master. Required.
	Master string `yaml:"master"`
	// Addresses is host:port of each Sentinel. Required.
	Addresses []string `yaml:"addresses" config:"expand"`
	// Username is the Sentinels' own ACL user; the user of Redis is not sent to Sentinels. Default: none.
	Username string `yaml:"username"`
	// PasswordFile holds the Sentinels' own password, one line, read at every dial.
	// Default: none.
	PasswordFile string `yaml:"password_file" config:"expand"`
	// PasswordInline is the password itself, as in Redis. Default: none.
	PasswordInline string `yaml:"password" config:"expand"`
}

// TLS names the trusted authorities, and baton's own certificate. The files are read at every dial, so renewed certificates need no
// restart. They are PEM.
type TLS struct {
	// CAFile holds the authorities that may have signed the server's certificate.
	// Default: those of the operating system.
	CAFile string `yaml:"ca_file" config:"expand"`
	// CertFile is the client certificate, for servers that ask for one; set it together with key_file. Default: none.
	CertFile string `yaml:"cert_file" config:"expand"`
	// KeyFile is the private key of cert_file. Default: none.
	KeyFile string `yaml:"key_file" config:"expand"`
	// ServerName is the name in the server's certificate, if it differs from the host that is dialled. Default: that host.
	ServerName string `yaml:"server_name"`
}

// Address returns the URL without user and password. It may be printed, and can be dialled together with User and Password. It is empty for
// Sentinel and Cluster.
func (r Redis) Address() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}

// User returns the ACL user. It returns "" for Redis' default user.
func (r Redis) User() string {
	if u, err := url.Parse(r.URL); err == nil && u.User.Username() != "" {
		return u.User.Username()
	}
	return r.Username
}

// Masters returns the servers of the quorum in the order of the file, each as a separate Redis. It returns none if there is no quorum.
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

// encrypted reports whether the connections for data use TLS.
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
