// One contender: its session, and what it does with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const visitLasts = 20 * time.Millisecond

type contender struct {
	ctx       context.Context
	who       string
	out       *answers
	session   *concurrency.Session
	mutexes   map[string]*concurrency.Mutex
	elections map[string]*concurrency.Election
}

func contend(ctx context.Context, who string, queue <-chan []string, out *answers,
	client *clientv3.Client, ttl int) {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	if err != nil {
		out.say(who, "failed", err)
		return
	}
	defer session.Close()
	c := &contender{ctx, who, out, session, map[string]*concurrency.Mutex{},
		map[string]*concurrency.Election{}}
	for words := range queue {
		if ctx.Err() != nil {
			return
		}
		if err := c.do(words); err != nil {
			out.say(who, "failed", strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
}

func (c *contender) do(words []string) error {
	if len(words) < 2 {
		return errors.New("a command is WHO WHAT NAME")
	}
	name, more := words[1], words[2:]
	switch words[0] {
	case "lock":
		return c.locked(name, c.mutex(name).Lock(c.ctx))
	case "try":
		return c.locked(name, c.mutex(name).TryLock(c.ctx))
	case "unlock":
		return c.done(c.mutex(name).Unlock(c.ctx), "unlocked")
	case "visit":
		return c.visit(name, more)
	case "time":
		return c.time(name)
	case "campaign":
		return c.campaign(name, strings.Join(more, " "))
	case "resign":
		return c.done(c.election(name).Resign(c.ctx), "resigned")
	case "observe":
		return c.observe(name)
	}
	return fmt.Errorf("there is no command %q", words[0])
}

func (c *contender) done(err error, words ...any) error {
	if err == nil {
		c.out.say(c.who, words...)
	}
	return err
}

func (c *contender) mutex(name string) *concurrency.Mutex {
	if c.mutexes[name] == nil {
		c.mutexes[name] = concurrency.NewMutex(c.session, name)
	}
	return c.mutexes[name]
}

func (c *contender) election(name string) *concurrency.Election {
	if c.elections[name] == nil {
		c.elections[name] = concurrency.NewElection(c.session, name)
	}
	return c.elections[name]
}

func (c *contender) locked(name string, err error) error {
	if errors.Is(err, concurrency.ErrLocked) {
		c.out.say(c.who, "taken")
		return nil
	}
	if err != nil {
		return err
	}
	m := c.mutex(name)
	c.out.say(c.who, "locked", m.Key(), m.Header().Revision)
	return nil
}

// Whoever is in makes a folder, which only one can, and says so in a file.
func (c *contender) visit(name string, more []string) error {
	if len(more) < 2 {
		return errors.New("visit needs NAME TIMES FOLDER")
	}
	times, err := strconv.Atoi(more[0])
	if err != nil {
		return err
	}
	folder := strings.Join(more[1:], " ")
	in := filepath.Join(folder, "in")
	m := c.mutex(name)
	for range times {
		if err := m.Lock(c.ctx); err != nil {
			return err
		}
		if err := os.Mkdir(in, 0o700); err != nil {
			note(folder, "violations", err.Error())
		}
		note(folder, "log", m.Key())
		time.Sleep(visitLasts)
		if err := os.Remove(in); err != nil {
			note(folder, "violations", err.Error())
		}
		if err := m.Unlock(c.ctx); err != nil {
			return err
		}
	}
	return c.done(nil, "visited")
}

func note(folder, file, line string) {
	to, err := os.OpenFile(filepath.Join(folder, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fail(err)
	}
	defer to.Close()
	fmt.Fprintln(to, line)
}

func (c *contender) time(name string) error {
	m := c.mutex(name)
	begin := time.Now()
	if err := m.Lock(c.ctx); err != nil {
		return err
	}
	err := m.Unlock(c.ctx)
	return c.done(err, "took", time.Since(begin).Nanoseconds())
}

func (c *contender) campaign(name, value string) error {
	e := c.election(name)
	err := e.Campaign(c.ctx, value)
	return c.done(err, "leads", e.Key(), e.Rev())
}

func (c *contender) observe(name string) error {
	for leader := range c.election(name).Observe(c.ctx) {
		c.out.say(c.who, "sees", string(leader.Kvs[0].Value))
	}
	return nil
}
