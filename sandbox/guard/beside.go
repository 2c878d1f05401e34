package guard

// Beside returns a guard like g, but of another folder: for one call that may write
// there too. It is nil for a nil Guard. The caller closes it.
func (g *Guard) Beside(root string) (*Guard, error) {
	if g == nil {
		return nil, nil
	}
	o := g.options
	o.Roots = []string{root}
	return New(o)
}
