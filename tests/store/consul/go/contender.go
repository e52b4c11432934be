// One contender: its session, and what it does with it.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

const (
	visitLasts = 20 * time.Millisecond
	tryLasts   = 100 * time.Millisecond
	lockDelay  = time.Second
)

// A permit has a session of its own, which deletes its contender key.
type permit struct {
	*api.Semaphore
	session string
	ended   chan struct{}
}

type contender struct {
	stop       chan struct{}
	who        string
	out        *answers
	client     *api.Client
	ttl        time.Duration
	session    string
	locks      map[string]*api.Lock
	semaphores map[string]*permit
	given      map[string]chan struct{} // closed when it is about to be given back
}

func contend(stop chan struct{}, who string, queue <-chan []string, out *answers,
	client *api.Client, ttl time.Duration) {
	c := &contender{stop, who, out, client, ttl, "", map[string]*api.Lock{},
		map[string]*permit{}, map[string]chan struct{}{}}
	session, err := c.begin(api.SessionBehaviorRelease, stop)
	if err != nil {
		out.say(who, "failed", err)
		return
	}
	c.session = session
	for words := range queue {
		select {
		case <-stop:
		default:
			if err := c.do(words); err != nil {
				out.say(who, "failed", strings.ReplaceAll(err.Error(), "\n", " "))
			}
		}
	}
	for _, p := range c.semaphores {
		_ = p.Release() // what is not held is none of its own
		c.end(p)
	}
	_, _ = client.Session().Destroy(c.session, nil)
}

// A session that is renewed until the channel is closed.
func (c *contender) begin(behavior string, until chan struct{}) (string, error) {
	session, _, err := c.client.Session().CreateNoChecks(&api.SessionEntry{
		Name:      c.who,
		TTL:       c.ttl.String(),
		LockDelay: lockDelay,
		Behavior:  behavior,
	}, nil)
	if err == nil {
		go c.client.Session().RenewPeriodic(c.ttl.String(), session, nil, until)
	}
	return session, err
}

func (c *contender) do(words []string) error {
	if len(words) == 1 && words[0] == "destroy" {
		_, err := c.client.Session().Destroy(c.session, nil)
		return c.done(err, "destroyed")
	}
	if len(words) < 2 {
		return errors.New("a command is WHO WHAT NAME")
	}
	name, more := words[1], words[2:]
	switch words[0] {
	case "lock":
		return c.take(name, false)
	case "try":
		return c.take(name, true)
	case "unlock":
		return c.unlock(name)
	case "remove":
		return c.remove(name)
	case "visit":
		return c.visit(name, more)
	case "time":
		return c.time(name)
	case "enter":
		return c.enter(name, more, false)
	case "attempt":
		return c.enter(name, more, true)
	case "leave":
		return c.leave(name)
	case "stay":
		return c.stay(name, more)
	}
	return fmt.Errorf("there is no command %q", words[0])
}

func (c *contender) done(err error, words ...any) error {
	if err == nil {
		c.out.say(c.who, words...)
	}
	return err
}

func (c *contender) take(key string, once bool) error {
	options := &api.LockOptions{Key: key, Value: []byte(c.who), Session: c.session,
		LockTryOnce: once}
	if once {
		options.LockWaitTime = tryLasts
	}
	lock, err := c.client.LockOpts(options)
	if err != nil {
		return err
	}
	lost, err := lock.Lock(c.stop)
	if err != nil {
		return err
	}
	if lost == nil {
		return c.done(nil, "taken")
	}
	c.locks[key] = lock
	c.out.say(c.who, "locked", key, c.session)
	c.watch(key, lost)
	return nil
}

// The end of what is given back would be told the same way.
func (c *contender) watch(key string, lost <-chan struct{}) {
	given := make(chan struct{})
	c.given[key] = given
	go func() {
		select {
		case <-lost:
			c.out.say(c.who, "lost", key)
		case <-given:
		case <-c.stop:
		}
	}()
}

func (c *contender) give(key string) {
	if given := c.given[key]; given != nil {
		close(given)
		delete(c.given, key)
	}
}

func (c *contender) unlock(key string) error {
	if c.locks[key] == nil {
		return api.ErrLockNotHeld
	}
	c.give(key)
	return c.done(c.locks[key].Unlock(), "unlocked")
}

func (c *contender) remove(key string) error {
	if c.locks[key] == nil {
		return api.ErrLockNotHeld
	}
	err := c.locks[key].Destroy()
	if errors.Is(err, api.ErrLockInUse) {
		return c.done(nil, "in use")
	}
	return c.done(err, "removed")
}

// Whoever is in makes a folder, which only one can, and adds one to what a file says.
func (c *contender) visit(key string, more []string) error {
	if len(more) < 2 {
		return errors.New("visit needs KEY TIMES FOLDER")
	}
	times, err := strconv.Atoi(more[0])
	if err != nil {
		return err
	}
	folder := strings.Join(more[1:], " ")
	in := filepath.Join(folder, "in")
	lock, err := c.client.LockOpts(&api.LockOptions{Key: key, Session: c.session})
	if err != nil {
		return err
	}
	for range times {
		if _, err := lock.Lock(c.stop); err != nil {
			return err
		}
		if err := os.Mkdir(in, 0o700); err != nil {
			note(folder, "violations", err.Error())
		}
		count(folder)
		if err := os.Remove(in); err != nil {
			note(folder, "violations", err.Error())
		}
		if err := lock.Unlock(); err != nil {
			return err
		}
	}
	return c.done(nil, "visited")
}

func count(folder string) {
	file := filepath.Join(folder, "counter")
	said, _ := os.ReadFile(file) // there is none at first
	before, _ := strconv.Atoi(strings.TrimSpace(string(said)))
	time.Sleep(visitLasts)
	if err := os.WriteFile(file, []byte(strconv.Itoa(before+1)+"\n"), 0o600); err != nil {
		fail(err)
	}
}

func note(folder, file, line string) {
	to, err := os.OpenFile(filepath.Join(folder, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fail(err)
	}
	defer to.Close()
	fmt.Fprintln(to, line)
}

func (c *contender) time(key string) error {
	lock, err := c.client.LockOpts(&api.LockOptions{Key: key, Session: c.session})
	if err != nil {
		return err
	}
	begin := time.Now()
	if _, err := lock.Lock(c.stop); err != nil {
		return err
	}
	err = lock.Unlock()
	return c.done(err, "took", time.Since(begin).Nanoseconds())
}

func (c *contender) semaphore(prefix, limit string, once bool) (*permit, error) {
	number, err := strconv.Atoi(limit)
	if err != nil {
		return nil, err
	}
	p := &permit{ended: make(chan struct{})}
	if p.session, err = c.begin(api.SessionBehaviorDelete, p.ended); err != nil {
		return nil, err
	}
	options := &api.SemaphoreOptions{Prefix: prefix, Limit: number, Value: []byte(c.who),
		Session: p.session, SemaphoreTryOnce: once}
	if once {
		options.SemaphoreWaitTime = tryLasts
	}
	p.Semaphore, err = c.client.SemaphoreOpts(options)
	return p, err
}

func (c *contender) end(p *permit) {
	close(p.ended)
	_, _ = c.client.Session().Destroy(p.session, nil)
}

func (c *contender) enter(prefix string, more []string, once bool) error {
	if len(more) != 1 {
		return errors.New("a semaphore needs PREFIX LIMIT")
	}
	semaphore, err := c.semaphore(prefix, more[0], once)
	if err != nil {
		return err
	}
	lost, err := semaphore.Acquire(c.stop)
	if err != nil || lost == nil {
		c.end(semaphore)
		if err != nil {
			return err
		}
		return c.done(nil, "taken")
	}
	c.semaphores[prefix] = semaphore
	c.out.say(c.who, "entered", prefix)
	c.watch(prefix, lost)
	return nil
}

func (c *contender) leave(prefix string) error {
	semaphore := c.semaphores[prefix]
	if semaphore == nil {
		return api.ErrSemaphoreNotHeld
	}
	delete(c.semaphores, prefix)
	c.give(prefix)
	defer c.end(semaphore)
	return c.done(semaphore.Release(), "left")
}

// Whoever is in has a file there; more of them than the limit are a violation.
func (c *contender) stay(prefix string, more []string) error {
	if len(more) < 3 {
		return errors.New("stay needs PREFIX LIMIT TIMES FOLDER")
	}
	times, err := strconv.Atoi(more[1])
	if err != nil {
		return err
	}
	semaphore, err := c.semaphore(prefix, more[0], false)
	if err != nil {
		return err
	}
	defer c.end(semaphore)
	limit, _ := strconv.Atoi(more[0]) // it was one just now
	folder := strings.Join(more[2:], " ")
	mine := filepath.Join(folder, "in-"+c.who)
	for range times {
		if _, err := semaphore.Acquire(c.stop); err != nil {
			return err
		}
		if err := os.WriteFile(mine, nil, 0o600); err != nil {
			fail(err)
		}
		inside, _ := filepath.Glob(filepath.Join(folder, "in-*"))
		if len(inside) > limit {
			note(folder, "violations", fmt.Sprint(inside))
		}
		note(folder, "numbers", strconv.Itoa(len(inside)))
		time.Sleep(visitLasts)
		if err := os.Remove(mine); err != nil {
			note(folder, "violations", err.Error())
		}
		if err := semaphore.Release(); err != nil {
			return err
		}
	}
	return c.done(nil, "stayed")
}
