package journal

import (
	"errors"
	"fmt"

	"github.com/toold/toold/internal/journal/chain"
)

// Accept records the present end of the journal in dir as valid, for instance after a backup was restored. It returns
// the files that it has set aside because they do not verify, and records their names.
func Accept(dir string) (aside []string, err error) {
	f, err := openFiles(dir)
	if err == nil {
		_, aside, err = chain.Accept(f.options(nil))
	}
	if err == nil {
		err = removeIndex(f.path) // it may describe the previous journal
	}
	if err == nil && len(aside) > 0 {
		err = accepted(&f, aside)
	}
	if err = errors.Join(err, f.close()); err != nil {
		return aside, fmt.Errorf("cannot note the end of the journal: %w", err)
	}
	return aside, nil
}

func accepted(f *files, aside []string) error {
	log, err := chain.Open(f.options(func(chain.Record) error { return nil }))
	if err != nil {
		return err
	}
	return errors.Join(log.Accepted(aside), log.Close())
}
