package site

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"time"

	"baton/internal/config"
	"baton/internal/redisconn"
)

// OpenRedis prepares the connections to the Redis that has the lock, without connecting.
func OpenRedis(c config.Config) (*redisconn.Store, error) { return openRedis(c, c.Redis) }

func openRedis(c config.Config, r config.Redis) (*redisconn.Store, error) {
	o := redisconn.Options{
		URL:        r.Address(),
		Cluster:    r.Cluster,
		Database:   r.Database,
		Username:   r.User(),
		Password:   r.Password,
		TLS:        r.TLSConfig,
		ClientName: "baton:" + c.Node.ID,
		// As for databases, a connection that a firewall has forgotten must not delay a run for longer than a fraction of the term.
		Timeout: min(5*time.Second, c.Election.TTL/2),
	}
	if s := r.Sentinel; s != nil {
		o.Sentinel = &redisconn.SentinelOptions{
			Master: s.Master, Addresses: s.Addresses, Username: s.Username, Password: r.SentinelPassword,
		}
	}
	store, err := redisconn.Open(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.At(""), err)
	}
	return store, nil
}

// Stores are the stores of the jobs' data, by their names in the configuration. The name "" stands for the Redis that has the lock. If two
// names stand for the same Redis, they share their connections.
type Stores map[string]*redisconn.Store

// OpenStores prepares the connections to all stores except the store of the lock, which is already open. It does not connect.
func OpenStores(c config.Config, lock *redisconn.Store) (Stores, error) {
	return Stores{}.Next(config.Config{}, c, lock)
}

// Next returns the stores of the configuration c. The argument before is the previous configuration. If a store is the same in both
// configurations, it stays open.
func (s Stores) Next(before, c config.Config, lock *redisconn.Store) (Stores, error) {
	type opened struct {
		config.Redis
		store *redisconn.Store
	}
	all := []opened{{c.Redis.Data(), lock}}
	for name, store := range s {
		all = append(all, opened{before.Store(name).Data(), store})
	}
	next := Stores{"": lock}
	for _, r := range c.AllStores()[1:] {
		for _, o := range all {
			if next[r.StoreName] == nil && reflect.DeepEqual(o.Redis, r.Data()) {
				next[r.StoreName] = o.store
			}
		}
		if next[r.StoreName] != nil {
			continue
		}
		store, err := openRedis(c, r)
		if err != nil {
			return nil, errors.Join(err, next.Without(s).Close())
		}
		next[r.StoreName] = store
		all = append(all, opened{r.Data(), store})
	}
	return next, nil
}

// settingOfRedis matches the names of the settings under "redis" in error texts. The errors of every Redis contain these names.
var settingOfRedis = regexp.MustCompile(`\bredis\.(url|cluster|sentinel|username|password_file|password|tls)\b`)

// InStore returns an error text in which the names of the settings under "redis" are replaced. The new names are the store's own settings.
func InStore(store, text string) string {
	if store == "" {
		return text
	}
	return settingOfRedis.ReplaceAllString(text, "stores."+store+".$1")
}

// Of returns the store with the data of a job.
func (s Stores) Of(j config.Job) *redisconn.Store { return s[j.Flush.From.Store] }

// Used returns the stores that jobs of the configuration read, without the Redis that has the lock.
func (s Stores) Used(c config.Config) Stores {
	used := Stores{}
	for _, j := range c.Jobs {
		if name := j.Flush.From.Store; name != "" {
			used[name] = s[name]
		}
	}
	return used
}

// Without returns the stores that neither belong to the argument others nor share the connections of the lock. It returns each store once.
func (s Stores) Without(others Stores) Stores {
	seen := map[*redisconn.Store]bool{s[""]: true}
	for _, store := range others {
		seen[store] = true
	}
	rest := Stores{}
	for name, store := range s {
		if !seen[store] {
			rest[name], seen[store] = store, true
		}
	}
	return rest
}

// Close drops the connections to all stores.
func (s Stores) Close() error {
	var problems []error
	for _, store := range s {
		problems = append(problems, store.Close())
	}
	return errors.Join(problems...)
}
