export {
  BufferAttribute, BufferGeometry, Color, DirectionalLight, DoubleSide, Group, HemisphereLight, InstancedMesh,
  LineBasicMaterial, LineSegments, Matrix4, Mesh, MeshStandardMaterial, OrthographicCamera, PerspectiveCamera,
  PlaneGeometry, Quaternion, Raycaster, Scene, ShadowMaterial, Vector2, Vector3, WebGLRenderer,
} from "three";
export { OrbitControls } from "three/addons/controls/OrbitControls.js";
export { Line2 } from "three/addons/lines/Line2.js";
export { LineGeometry } from "three/addons/lines/LineGeometry.js";
export { LineMaterial } from "three/addons/lines/LineMaterial.js";
