#pragma once

namespace planloom {

/// Makes canvases speak to screen readers: the canvas' children are the boxes in sight, with names,
/// descriptions (kind, devices, rows), places, states, and the nodes their data comes from and goes to.
/// Harmless to call again.
void installDagAccessibility();

} // namespace planloom
