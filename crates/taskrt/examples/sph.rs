//! A column of water that collapses: smoothed particle hydrodynamics in two dimensions, three loops per step.
//!
//! Kernels and forces after Müller, Charypar, Gross (Particle-based fluid simulation for interactive applications, SCA
//! 2003), with the constants of the kernels for two dimensions. Loops are uneven: crowded particles have more
//! neighbours.

mod common;

use std::f64::consts::PI;
use std::process::ExitCode;

/// Radius within which particles act on each other; the unit of length.
const RADIUS: f64 = 1.0;
const SPACING: f64 = 0.5;
const MASS: f64 = SPACING * SPACING;
const REST_DENSITY: f64 = 1.0;
/// Pressure per density; stiff enough that the density stays within some percent.
const STIFFNESS: f64 = 50.0;
const VISCOSITY: f64 = 1.0;
const GRAVITY: f64 = -1.0;
const STEP: f64 = 0.005;
const STEPS: usize = 30;

type Vector = [f64; 2];

#[derive(Clone, Debug, PartialEq)]
struct Fluid {
    place: Vec<Vector>,
    speed: Vec<Vector>,
    density: Vec<f64>,
    force: Vec<Vector>,
}

/// Particles by the cell of a square grid that they are in.
struct Grid {
    columns: usize,
    rows: usize,
    starts: Vec<usize>,
    particles: Vec<usize>,
}

impl Grid {
    fn new(place: &[Vector], width: f64) -> Self {
        let cell = |x: f64| (x.max(0.0) / RADIUS) as usize;
        let rows = 1 + place.iter().map(|place| cell(place[1])).max().unwrap_or(0);
        let columns = 1 + cell(width);
        let index = |place: &Vector| cell(place[1]) * columns + cell(place[0]).min(columns - 1);
        let mut starts = vec![0; rows * columns + 1];
        place.iter().for_each(|place| starts[index(place) + 1] += 1);
        (0..rows * columns).for_each(|cell| starts[cell + 1] += starts[cell]);
        let (mut next, mut particles) = (starts.clone(), vec![0; place.len()]);
        for (particle, place) in place.iter().enumerate() {
            particles[next[index(place)]] = particle;
            next[index(place)] += 1;
        }
        Self { columns, rows, starts, particles }
    }

    /// Calls `each` with every particle in the cells around a place.
    fn around(&self, place: Vector, mut each: impl FnMut(usize)) {
        let cell = |x: f64, count: usize| ((x.max(0.0) / RADIUS) as usize).min(count - 1);
        let (column, row) = (cell(place[0], self.columns), cell(place[1], self.rows));
        for row in row.saturating_sub(1)..=(row + 1).min(self.rows - 1) {
            for column in column.saturating_sub(1)..=(column + 1).min(self.columns - 1) {
                let cell = row * self.columns + column;
                self.particles[self.starts[cell]..self.starts[cell + 1]]
                    .iter()
                    .for_each(|&p| each(p));
            }
        }
    }
}

fn distance(a: Vector, b: Vector) -> (Vector, f64) {
    let between = [a[0] - b[0], a[1] - b[1]];
    (between, (between[0] * between[0] + between[1] * between[1]).sqrt())
}

/// Density at a particle: kernel 4 / (pi h^8) (h² - r²)³.
fn density(fluid: &Fluid, grid: &Grid, particle: usize) -> f64 {
    let (mut sum, here) = (0.0, fluid.place[particle]);
    grid.around(here, |other| {
        let (_, r) = distance(here, fluid.place[other]);
        sum += (RADIUS * RADIUS - r * r).max(0.0).powi(3);
    });
    MASS * 4.0 / (PI * RADIUS.powi(8)) * sum
}

fn pressure(density: f64) -> f64 {
    STIFFNESS * (density - REST_DENSITY).max(0.0)
}

/// Pressure and viscosity on a particle per mass, and gravity: gradient 30 / (pi h^5) (h - r)², Laplacian 40 / (pi h^5)
/// (h - r).
fn force(fluid: &Fluid, grid: &Grid, particle: usize) -> Vector {
    let (here, own) = (fluid.place[particle], fluid.density[particle]);
    let mut sum = [0.0, GRAVITY];
    grid.around(here, |other| {
        let (between, r) = distance(here, fluid.place[other]);
        if other == particle || r >= RADIUS || r == 0.0 {
            return;
        }
        let theirs = fluid.density[other];
        let push = (pressure(own) + pressure(theirs)) / (2.0 * own * theirs);
        let push = MASS * push * 30.0 / (PI * RADIUS.powi(5)) * (RADIUS - r).powi(2) / r;
        let drag = MASS * VISCOSITY / (own * theirs) * 40.0 / (PI * RADIUS.powi(5)) * (RADIUS - r);
        for axis in 0..2 {
            let slower = fluid.speed[other][axis] - fluid.speed[particle][axis];
            sum[axis] += push * between[axis] + drag * slower;
        }
    });
    sum
}

/// Moves a particle; walls throw it back.
fn step(place: &mut Vector, speed: &mut Vector, force: Vector, width: f64) {
    for axis in 0..2 {
        speed[axis] += STEP * force[axis];
        place[axis] += STEP * speed[axis];
    }
    for (axis, least, most) in [(0, 0.0, width), (1, 0.0, f64::INFINITY)] {
        if place[axis] < least || place[axis] > most {
            place[axis] = place[axis].clamp(least, most);
            speed[axis] *= -0.5;
        }
    }
}

/// A column that fills a fifth of the width.
fn column(particles: usize) -> (Fluid, f64) {
    let across = (particles as f64 / 2.0).sqrt().ceil() as usize;
    let at = |n: usize| [(n % across) as f64 * SPACING, (n / across) as f64 * SPACING];
    let zero = vec![[0.0; 2]; particles];
    let place = (0..particles).map(at).collect();
    let density = vec![0.0; particles];
    let fluid = Fluid { place, speed: zero.clone(), density, force: zero };
    (fluid, 5.0 * across as f64 * SPACING)
}

/// A loop over the elements of a slice; `each` gets an element and its number.
trait Loops {
    fn each<T: Send>(&self, slice: &mut [T], each: impl Fn(usize, &mut T) + Sync);
}

struct OneThread;

impl Loops for OneThread {
    fn each<T: Send>(&self, slice: &mut [T], each: impl Fn(usize, &mut T) + Sync) {
        slice.iter_mut().enumerate().for_each(|(place, element)| each(place, element));
    }
}

impl Loops for ampsched_taskrt::Runtime {
    #[track_caller]
    fn each<T: Send>(&self, slice: &mut [T], each: impl Fn(usize, &mut T) + Sync) {
        self.for_each_mut(slice, |first, part| {
            part.iter_mut().enumerate().for_each(|(offset, element)| each(first + offset, element));
        });
    }
}

fn simulate(loops: &impl Loops, mut fluid: Fluid, width: f64) -> Fluid {
    for _ in 0..STEPS {
        let grid = Grid::new(&fluid.place, width);
        let mut densities = std::mem::take(&mut fluid.density);
        loops.each(&mut densities, |particle, value| *value = density(&fluid, &grid, particle));
        fluid.density = densities;
        let mut forces = std::mem::take(&mut fluid.force);
        loops.each(&mut forces, |particle, value| *value = force(&fluid, &grid, particle));
        fluid.force = forces;
        let mut moving: Vec<(Vector, Vector)> =
            fluid.place.iter().copied().zip(fluid.speed.iter().copied()).collect();
        loops.each(&mut moving, |particle, (place, speed)| {
            step(place, speed, fluid.force[particle], width);
        });
        (fluid.place, fluid.speed) = moving.into_iter().unzip();
    }
    fluid
}

fn main() -> ExitCode {
    common::main("sph", 20_000, |example| {
        let (fluid, width) = column(example.size);
        let (expected, result) = example.compare(
            || simulate(&OneThread, fluid.clone(), width),
            |runtime| Ok(simulate(runtime, fluid.clone(), width)),
        )?;
        assert!(result == expected, "the same fluid");
        let highest = |fluid: &Fluid| fluid.place.iter().map(|place| place[1]).fold(0.0, f64::max);
        let (before, after) = (highest(&fluid), highest(&result));
        println!(
            "{} particles; the column's height fell from {before:.2} to {after:.2}",
            example.size
        );
        assert!(after < before && result.place.iter().flatten().all(|x| x.is_finite()));
        Ok(())
    })
}
