package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Store is a further Redis, with data to flush and no lock: a job names it in from.store. While a store is unavailable, only the jobs that
// read it fail. One of URL, Sentinel and Cluster names the servers. The settings mean the same as in redis.
type Store struct {
	// URL is one server: redis://host:port/db, rediss:// for TLS, or
	// unix:///path/to.sock?db=0. This or sentinel or cluster is required.
	URL string `yaml:"url,omitempty" config:"expand"`
	// Username is the ACL user. Default: none, which Redis takes as "default".
	Username string `yaml:"username,omitempty"`
	// PasswordFile holds the password, one line, read at every dial. Default: none.
	PasswordFile string `yaml:"password_file,omitempty" config:"expand"`
	// PasswordInline is the password itself, if it comes from the environment. Default: none.
	PasswordInline string `yaml:"password,omitempty" config:"expand"`
	// Database is the number of the database behind Sentinels. Default: 0.
	Database int `yaml:"database,omitempty"`
	// Sentinel finds the master of a replicated Redis. Default: none.
	Sentinel *Sentinel `yaml:"sentinel,omitempty"`
	// Cluster is host:port of some nodes of a Redis Cluster. Default: none.
	Cluster []string `yaml:"cluster,omitempty" config:"expand"`
	// TLS says how connections are encrypted; tls: {} turns it on for Sentinel and Cluster,
	// and rediss:// for a URL. Default: none.
	TLS *TLS `yaml:"tls,omitempty"`
}

// lockStore is the name of the Redis with the lock. No store may have this name.
const lockStore = "redis"

// Store returns the Redis that contains the data of jobs with the given from.store. The name "" means the Redis with the lock.
func (c Config) Store(name string) Redis {
	if name == "" {
		return c.Redis
	}
	return c.Stores[name].redis(name)
}

// StoreOf returns the Redis that contains the data of a job.
func (c Config) StoreOf(j Job) Redis { return c.Store(j.Flush.From.Store) }

// AllStores returns all stores. The Redis with the lock is the first, and the others follow in the order of their names.
func (c Config) AllStores() []Redis {
	all := []Redis{c.Redis}
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		all = append(all, c.Store(name))
	}
	return all
}

func (s Store) redis(name string) Redis {
	return Redis{
		URL: s.URL, Username: s.Username, PasswordFile: s.PasswordFile, PasswordInline: s.PasswordInline,
		Database: s.Database, Sentinel: s.Sentinel, Cluster: s.Cluster, TLS: s.TLS, StoreName: name,
	}
}

// of returns a Store with the settings of r that a Store also has.
func (Store) of(r Redis) Store {
	return Store{
		URL: r.URL, Username: r.Username, PasswordFile: r.PasswordFile, PasswordInline: r.PasswordInline,
		Database: r.Database, Sentinel: r.Sentinel, Cluster: r.Cluster, TLS: r.TLS,
	}
}

// At returns the path of a setting of r, such as redis.url or stores.NAME.url. For the setting "" it returns the path of r itself.
func (r Redis) At(setting string) string {
	section := lockStore
	if r.StoreName != "" {
		section = "stores." + r.StoreName
	}
	return strings.TrimSuffix(section+"."+setting, ".")
}

// Data returns only the settings of r that concern its data. Two stores with equal Data can share their connections.
func (r Redis) Data() Redis {
	r.Quorum, r.StoreName = nil, ""
	return r
}

// Place returns a text that identifies servers and the databases on them, by their addresses alone. Two stores with the same Place contain
// the same keys. The text contains no secret.
func (r Redis) Place() string {
	var servers []string
	name, db := "", fmt.Sprint(r.Database)
	switch {
	case r.Sentinel != nil:
		servers, name = r.Sentinel.Addresses, r.Sentinel.Master+"@"
	case len(r.Cluster) > 0:
		servers = r.Cluster
	default:
		servers = []string{serverOf(r.URL)}
		db = "0"
		if u, err := url.Parse(r.URL); err == nil && u.Scheme == "unix" {
			db = cmp.Or(u.Query().Get("db"), "0")
		} else if err == nil {
			db = cmp.Or(path.Base(strings.Trim(u.Path, "/")), "0")
		}
		if db == "." {
			db = "0"
		}
	}
	servers = slices.Sorted(slices.Values(servers))
	return name + strings.ToLower(strings.Join(servers, ",")) + "/" + db
}

// stores checks the names and the settings of all stores.
func (v *validator) stores() {
	for _, r := range v.AllStores()[1:] {
		at, name := r.At(""), r.StoreName
		switch {
		case name == lockStore:
			v.fail(at, "the Redis that has the lock is called redis already; choose another name")
		case !databaseName.MatchString(name):
			v.fail(at, "use lower-case letters, digits, dashes and underscores, at most 63 characters")
		}
		v.redis(r)
	}
}

// storeOf checks the name of the store that a job reads.
func (v *validator) storeOf(path, name string) bool {
	if _, ok := v.Stores[name]; ok || name == "" {
		return true
	}
	switch {
	case name == lockStore:
		v.fail(path, "redis is where the key is without this; remove it")
	case len(v.Stores) == 0:
		v.fail(path, "%q is not under stores, which is empty", name)
	default:
		v.fail(path, "%q is not under stores; %s", name, suggest(name, slices.Collect(maps.Keys(v.Stores))))
	}
	return false
}
