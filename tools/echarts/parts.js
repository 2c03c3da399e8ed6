// What python/ampsched/report/report.js uses of ECharts.
import * as echarts from "echarts/core";
import { BarChart, CustomChart } from "echarts/charts";
import { AriaComponent, DataZoomComponent, GridComponent, MarkLineComponent, TooltipComponent } from "echarts/components";
import { SVGRenderer } from "echarts/renderers";

echarts.use([
  AriaComponent,
  BarChart,
  CustomChart,
  DataZoomComponent,
  GridComponent,
  MarkLineComponent,
  SVGRenderer,
  TooltipComponent,
]);

export { graphic, init } from "echarts/core";
